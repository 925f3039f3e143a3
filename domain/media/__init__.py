"""Images of products, which are fetched by separate jobs, stored once per content, and added to documents."""
