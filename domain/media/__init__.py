"""Images of products: fetched independently of runs, stored once by content, shown in documents."""
