"""Images that products name: fetched beside the runs, kept once by content, shown in documents."""
