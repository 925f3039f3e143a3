"""OAuth 2.1: apps that people sign in to with their account, and the access that they grant."""
