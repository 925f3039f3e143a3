"""Declaration and description of the API's operations, independent of the server and of the areas that define them."""
