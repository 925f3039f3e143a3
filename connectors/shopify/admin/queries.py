"""GraphQL queries for the Admin API of a Shopify shop, in its versions from 2026-01."""

CATALOGUE = """{
  products(query: "status:active") {
    edges { node {
      id title descriptionHtml vendor productType tags
      category { fullName }
      media { edges { node {
        id alt mediaContentType
        ... on MediaImage { image { url } }
      } } }
      variants { edges { node {
        id title sku barcode price compareAtPrice availableForSale position
        selectedOptions { name value }
        image { url altText }
        inventoryItem { unitCost { amount currencyCode } countryCodeOfOrigin measurement { weight { value unit } } }
      } } }
    } }
  }
}"""
"""Bulk query for active products with images and variants. Shopify permits five connections and two nesting levels."""

STOCK = """{
  inventoryItems {
    edges { node {
      id sku tracked
      variant { id availableForSale product { id } }
      inventoryLevels { edges { node {
        id
        location { id name }
        quantities(names: ["available", "incoming"]) { name quantity }
      } } }
    } }
  }
}"""

VARIANT_STOCK = """query ($id: ID!, $after: String) {
  productVariant(id: $id) {
    id availableForSale product { id }
    inventoryItem {
      id sku tracked
      inventoryLevels(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id
          location { id name }
          quantities(names: ["available", "incoming"]) { name quantity }
        }
      }
    }
  }
}"""
"""Query for the stock of one variant, in pages of 100 locations."""

RUN = """mutation ($query: String!) {
  bulkOperationRunQuery(query: $query, groupObjects: false) {
    bulkOperation { id status }
    userErrors { field message code }
  }
}"""

RECENT_OPERATIONS = """{
  shop { currencyCode }
  bulkOperations(first: 10, sortKey: CREATED_AT, reverse: true) {
    nodes { id status type query createdAt completedAt }
  }
}"""
"""Query for the shop's currency and its latest bulk operations, one of which may be reused."""

STATE = """query ($id: ID!) {
  bulkOperation(id: $id) { id status errorCode objectCount url partialDataUrl }
}"""
