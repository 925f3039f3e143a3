"""The addresses of OAuth that programs ask; what people are asked stands among the console's pages."""
