"""What headers of prices, stock and delivery are called."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, int, str], ...]] = (
    (
        "cost",
        100,
        "cost|wholesale|wholesale price|wholesale cost|dealer cost|dealer price|dealer net|net price|net cost"
        "|unit cost|cost per item|cost price|partner cost|e com cost|ecom cost|ecommerce cost|e commerce cost"
        "|trade price|trade cost|distributor net|distributor price|distributor cost|base cost|item cost"
        "|landed cost|fob|fob price|fob cost|your cost|your price|einkaufspreis|ek|ek preis|ek netto"
        "|haendlerpreis|handlerpreis|costo|precio mayorista|precio costo|nettopreis|customer price|special net"
        "|invoice cost|invoice price|standard cost|supplier cost|supplier price|vendor cost|vendor price"
        "|warehouse price|warehouse cost|dropship cost|drop ship cost|dropship price|drop ship price"
        "|container price|direct container price|designer net|stocking dealer|dealer|b#b price|first cost"
        "|net wholesale|cost usd|dealer wholesale|stocking price|wholesale usd",
    ),
    (
        "cost",
        90,
        "east cost|west cost|east price|west price|east|west|central|south|north|midwest|northeast|southeast"
        "|southwest|northwest|west coast|east coast|west coast price|east coast price|tier # price|price tier #"
        "|price level #|price #",
    ),
    (
        "msrp",
        100,
        "msrp|full retail price|full retail price msrp|suggested retail|suggested retail price|srp|rrp"
        "|manufacturer suggested retail price|manufacturers suggested retail price|msrp price|list price msrp|uvp"
        "|unverbindliche preisempfehlung|pvp sugerido|retail msrp|precio sugerido|retail price msrp"
        "|sugg retail|suggested msrp|msrp usd|msrp retail|bruttopreis uvp|recommended retail price",
    ),
    ("msrp", 80, "pvp"),
    (
        "msrp",
        70,
        "retail|retail price|list price|list|full retail|ticket price|listenpreis|precio de lista|precio lista"
        "|sugg retail price|catalog price",
    ),
    (
        "map",
        100,
        "map|map price|map prices|imap|emap|umap|miap|mapp|imap price|umap price|emap price|mapp price"
        "|lowest map price|map price sale price|minimum advertised price|min advertised price|internet map"
        "|map usd|unilateral map|cad map|map retail|map pricing|minimum advertised|imap prices|e map|i map"
        "|current map|minimum advertised price map|sale map",
    ),
    (
        "price",
        100,
        "price|variant price|selling price|sell price|current price|web price|online price|our price"
        "|preis|verkaufspreis|vk|vk preis|precio|precio de venta|precio venta|item price|product price"
        "|variants price|offers price|offer price|price amount|price value|afa price|customer price retail"
        "|standard price|precio actual|regular price|prix|normal price|consumer price|store price|price usd"
        "|precio normal|sales price|verkaufspreis brutto|endpreis|precio unitario|price current|final price",
    ),
    ("price", 58, "unit price"),
    ("price", 60, "amount|base price|list price|retail price|retail|cash price|bruttopreis"),
    (
        "sale_price",
        100,
        "sale price|special price|promo price|promotional price|discount price|discounted price|offer price sale"
        "|aktionspreis|angebotspreis|sonderpreis|precio oferta|precio de oferta|precio rebajado|price sale"
        "|flash price|event price|promotion price|clearance price",
    ),
    (
        "compare_at",
        100,
        "compare at price|variant compare at price|compare at|compareatprice|original price|old price|was price"
        "|regular price was|strike price|strikethrough price|streichpreis|precio anterior|precio antes"
        "|previous price|alter preis|variants compare at price|before price|price before discount|list price was"
        "|price original|price was|precio original|compare price|crossed out price|reg price",
    ),
    (
        "currency",
        100,
        "currency|currency code|price currency|offers price currency|offers pricecurrency|wahrung|moneda|divisa"
        "|price currency code|cost currency|pricecurrency|curr|iso currency|waehrung|currencycode",
    ),
    (
        "quantity",
        100,
        "quantity|qty|stock|stock quantity|stock qty|available quantity|available qty|available inventory"
        "|inventory|inventory quantity|inventory qty|variant inventory qty|variant inventory quantity|qty on hand"
        "|quantity on hand|on hand|on hand qty|qoh|oh|actual qty|qty available|quantity available|available stock"
        "|ready stock|in stock qty|in stock quantity|total|total stock|total qty|total quantity|total available"
        "|total inventory|aprox qty in stock as of today|approx qty in stock|qty in stock|quantity in stock"
        "|stock level|stock on hand|soh|atp|available to sell|ats|available to promise|lagerbestand|bestand|menge"
        "|verfugbare menge|lagermenge|existencia|existencias|cantidad|cantidad disponible|inventario"
        "|stock disponible|inventory level|net available|current stock|current inventory|free stock"
        "|stock available|units available|variants inventory quantity|inventory available|usable qty|sellable qty"
        "|on hand quantity|warehouse qty|available units|inventory on hand|inv|inv qty|stock count|verfugbar"
        "|lager",
    ),
    ("quantity", 80, "available|in stock|avail|avail qty|stock total|disponible|disponibilidad"),
    (
        "availability",
        100,
        "availability|stock status|inventory status|availability status|stock availability|verfugbarkeit"
        "|lieferbarkeit|estado de stock|offers availability|in stock status|available status|item availability"
        "|stock state|status stock|stock message|availability text|availability message",
    ),
    (
        "availability",
        75,
        "available|in stock|disponible|disponibilidad|variants available|lieferstatus|is in stock|instock"
        "|available for sale|is available",
    ),
    ("availability", 30, "status|item status"),
    (
        "location",
        100,
        "location|warehouse|warehouse code|warehouse name|warehouse id|location name|location id|location code"
        "|site|facility|dc|distribution center|lager ort|lagerort|almacen|bodega|ship from|ships from"
        "|stock location|wh|whse|inventory location|depot|ship from location|standort|store code"
        "|warehouse location",
    ),
    (
        "lead_time_days",
        100,
        "lead time|lead time days|leadtime|lead time in days|ships in|ship time|shipping time|delivery time"
        "|lieferzeit|lieferzeit tage|tiempo de entrega|processing time|handling time|days to ship"
        "|production lead time|lead time business days|lead time working days|lead days|replenishment lead time"
        "|supplier lead time|max handling time|plazo de entrega|ships in days|production time"
        "|supplier lead time days|supplier lead time in days|estimated lead time|dispatch time|lead time to ship"
        "|dias de entrega",
    ),
    (
        "lead_time_days@unit=hours",
        100,
        "lead time hrs|lead time hours|supplier lead time in business day hours|lead time in hours"
        "|supplier lead time hours|supplier lead time in business hours|ship time hours|lead time business hours"
        "|supplier lead time business day hours",
    ),
    (
        "lead_time_days@unit=weeks",
        100,
        "lead time weeks|lead time in weeks|lieferzeit wochen|lead time wks|production lead time weeks"
        "|supplier lead time weeks|semanas de entrega",
    ),
    (
        "incoming.0.quantity",
        100,
        "qty on order|quantity on order|on order|on order qty|incoming|incoming qty|incoming quantity"
        "|incoming stock|incoming stocks|incoming inventory|qty on po|on po|po qty|open po|open po qty|inbound"
        "|inbound qty|inbound quantity|in transit|in transit qty|qty in transit|quantity in transit|eta qty"
        "|eta quantity|next arrival qty|incoming stocks # # days|incoming #|incoming qty #|inbound shipment #"
        "|inbound shipment # qty|quantity for inbound shipment #|qty for inbound shipment #|zulauf|bestellt"
        "|en transito|en camino|next qty|next shipment qty|arriving qty|expected qty|expected quantity"
        "|restock qty|future qty|eta qty #|qty on order #|po # qty|backorder incoming|next available quantity"
        "|next available qty|arrival qty|incoming units|quantity incoming|qty incoming|qty inbound",
    ),
    (
        "incoming.0.eta",
        100,
        "eta|eta date|eta for inbound shipment #|eta #|eta date #|eta date from factory|availability date"
        "|available date|next available date|next availability date|item next availability date|expected date"
        "|expected arrival|expected arrival date|arrival date|next arrival|next arrival date|restock date"
        "|back in stock date|in stock date|due date|next eta|estimated arrival|estimated arrival date"
        "|incoming date|incoming eta|lieferdatum|verfugbar ab|wieder verfugbar ab|fecha de llegada|fecha llegada"
        "|fecha estimada|po eta|inbound eta|next shipment date|next shipment eta|next delivery|next delivery date"
        "|date available|expected in stock date|estimated time of arrival|estimated in stock date|backorder date"
        "|backorder eta|expected ship date|voraussichtlich lieferbar ab|next due date|availability eta"
        "|incoming date #|incoming eta #|arriving date|next avail date",
    ),
    (
        "ignore",
        100,
        "quantity backordered|backordered|qty backordered|committed|allocated|reserved|qty committed"
        "|qty allocated|qty reserved|quantity reserved|feed kind|feedkind|inventory policy|back orders"
        "|backorder qty|qty sold|mtd sales|ytd sales|percent off|discount|discount %|price per sqft"
        "|price per square foot|price international|compare at price international|international price"
        "|sale price effective date|shipping price|price range|price min|price max|vat|tax|mwst|iva|tax rate"
        "|unit pricing measure|unit pricing base measure|in stock date updated|price date|effective date"
        "|price effective date|last received|damaged|safety stock|unit price total measure|sell through"
        "|landed freight|surcharge|tariff surcharge|msrp per sqft",
    ),
)
