"""Process that receives emails with data for sources, by SMTP."""
