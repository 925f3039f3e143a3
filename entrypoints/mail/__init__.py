"""The process that receives mail for sources."""
