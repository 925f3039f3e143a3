"""Functions run over hostile input in processes of their own, whose memory and time are bounded."""
