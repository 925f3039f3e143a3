"""Feeds read in processes of their own, whose memory and time are bounded."""
