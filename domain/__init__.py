"""What is true about furniture catalogues, whatever the technology."""
