"""Process that receives mail for sources."""
