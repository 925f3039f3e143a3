"""What people ask of exports, and how they are carried out."""
