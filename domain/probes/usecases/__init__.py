"""What people ask of probes, and how they are carried out."""
