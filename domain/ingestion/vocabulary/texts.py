"""What headers of keys, titles, texts, categories and options are called."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, int, str], ...]] = (
    (
        "sku",
        100,
        "sku|item sku|variant sku|product sku|product sku number|sku number|sku no|sku code|sku id|sku #"
        "|seller sku|vendor sku|supplier sku|manufacturer sku|item number|item no|item nr|item num|item code"
        "|item id|part number|part no|part nr|vendor item number|vendor item|vendor item no|vendor part number"
        "|supplier part number|supplier item number|supplier item no|artikelnummer|artikel nr|artikelnr"
        "|article number|article no|art nr|art no|bestellnummer|referencia|ref|reference|codigo"
        "|codigo del producto|codigo de producto|merchant sku|stock code|stock number|style number|style no"
        "|style code|product code|product number|product no|material number|material no|variants sku"
        "|variation sku|internal sku|item sku number|supplier item|vendor product number|supplier sku number"
        "|item model|partnumber|itemnumber",
    ),
    ("sku", 88, "rug id|item #|item|article|artikel|product #|code|model sku|sku upc"),
    ("sku", 60, "style"),
    ("gtin", 70, "external product id|standard product id"),
    ("title", 90, "post title"),
    ("description", 90, "post content"),
    ("weight", 60, "kg|kgs|lbs|kilo|kilos"),
    ("ignore", 80, "pack size|packsize|pakkauskoko"),
    (
        "sku",
        60,
        "manufacturer model number|model number|model no|model code|product id|item ref|number|item name number"
        "|productid",
    ),
    ("sku", 40, "id|offer id|model|mfr model|product|piece number"),
    (
        "variant_key",
        100,
        "variant id|variation id|variantid|variants id|variant key|offer key|stock item id|inventory item id"
        "|variants # id|variant # id",
    ),
    ("variant_key", 30, "uuid|guid|listing id|record id"),
    (
        "product_key",
        100,
        "handle|product handle|item group id|itemgroupid|parent sku|parent id|parent|parent item|group id"
        "|product key|parent product|url key|group sku|parent code|style id|variant group"
        "|variant group id|product family id|slug|permalink slug|parent asin|configurable sku|product group id"
        "|family code|master sku|external id",
    ),
    ("product_key", 50, "product group|product id|productid|id|parent product id|product uuid|url handle"),
    (
        "gtin",
        100,
        "gtin|upc|ean|barcode|upc code|ean code|gtin code|variant barcode|bar code|gtin #|ean #|upc #|upc a"
        "|upc number|ean number|upc ean|gtin upc|upc gtin|gtin ean|ean upc|gtin number|item upc|product upc"
        "|upc barcode|ean barcode|strichcode|codigo de barras|jan|global trade item number|product gtin"
        "|each upc|unit upc|ean gtin|gtin ean upc|codigo ean|variants barcode|gtins|gtin upc ean or isbn"
        "|gtin upc ean isbn",
    ),
    ("gtin", 40, "product id value|carton upc|master upc"),
    (
        "mpn",
        100,
        "mpn|manufacturer part number|mfr part number|mfg part number|mfr part no|mfg part no|mfg #|mfr #"
        "|manufacturer number|manufacturer part no|mfg number|google shopping mpn|mfr number|herstellernummer"
        "|hersteller nr|manufacturer item number|manufacturer sku|manufacturer code|manufacturer no"
        "|numero de parte|mfg model|mfr model number|mfg model number|mfr sku",
    ),
    (
        "mpn",
        70,
        "manufacturer model number|model number|model no|model|modell|modelo|model code|modellnummer|model name number",
    ),
    (
        "mpn",
        30,
        "item number|item no|article number|article no|vendor sku|style number|rug id|supplier part number",
    ),
    (
        "title",
        100,
        "title|product title|product name|item name|item title|product name en|listing title|nombre"
        "|nombre del producto|titulo|produktname|artikelbezeichnung|bezeichnung|titel|produktbezeichnung"
        "|artikelname|nombre producto|product label|item short description|product display name"
        "|display name|web title|web name|webname|productname|products title|full name",
    ),
    ("title", 85, "name|titles|piece|item description|product short name|artikeltext"),
    (
        "title",
        70,
        "short description|product description short|short desc|description short|kurzbeschreibung"
        "|short product description",
    ),
    (
        "title",
        45,
        "description|product description|desc|item desc|product desc|descripcion|beschreibung|item|product"
        "|produkt|producto",
    ),
    ("title", 25, "product type name|caption|heading|pattern|design|design name|pattern name"),
    (
        "variant_title",
        100,
        "variant title|variant name|variation name|variants title|option title|variant description|variant label"
        "|variation title",
    ),
    (
        "description",
        100,
        "body html|body|description|long description|product description|full description|collection ad copy"
        "|ad copy|marketing copy|romance copy|description html|html description|product details|details"
        "|beschreibung|produktbeschreibung|descripcion|detalle|descripcion del producto|langbeschreibung"
        "|web description|romance|copy|marketing description|item long description|overview|extended description"
        "|product overview|description long|web copy|summary description|about this item|produkttext",
    ),
    ("description", 60, "content"),
    (
        "description",
        60,
        "short description|desc|product desc|item description|summary|product copy|item desc|artikelbeschreibung|kurzbeschreibung|resumen|korte omschrijving",
    ),
    (
        "brand",
        100,
        "brand|vendor|manufacturer|brand name|manufacturer name|vendor name|marke|hersteller|marca|fabricante"
        "|product brand|maker|brand label|mfr name|mfg name|mfr|mfg|brands|supplier brand|manufacturer brand"
        "|brand title|item brand|product vendor",
    ),
    ("brand", 50, "label"),
    (
        "collection",
        100,
        "collection|collection name|product collection|kollektion|serie|series|coleccion|product line"
        "|product family|family|group name|collection title|line|suite|range|product series|collections"
        "|design name|pattern name|program|series name|family name",
    ),
    ("collection", 80, "design|linea"),
    ("collection", 60, "name"),
    ("tags", 62, "pattern"),
    (
        "category_path",
        100,
        "category path|category hierarchy|product type|breadcrumb|breadcrumbs|taxonomy|categories|category tree",
    ),
    (
        "category_path",
        90,
        "item type|product group|kategorie|warengruppe|categoria|class name|product types|kategoriepfad|item category",
    ),
    ("category_path", 80, "product category"),
    ("category_path", 58, "type|typ"),
    (
        "category_path",
        70,
        "product class|department|merchandise category|web category|tipo|tipo de producto|produkttyp|classification",
    ),
    (
        "category_path.0",
        95,
        "category|main category|category menu|category #|categoria principal|hauptkategorie|top category"
        "|level # category",
    ),
    ("category_path.0", 60, "department|division|room|group"),
    (
        "category_path.1",
        95,
        "subcategory|sub category|sub category sub menu|unterkategorie|sublinea|subcategoria|secondary category"
        "|sub class|subclass|sub department|sub menu|product subcategory|sub type|sub category name"
        "|subcategory name|category sub|product sub category",
    ),
    ("category_path.2", 95, "sub sub menu|subsubcategory|sub subcategory|sub sub category|tertiary category"),
    (
        "google_category",
        100,
        "google product category|google shopping google product category|google category|google taxonomy"
        "|googleproductcategory",
    ),
    (
        "google_category",
        50,
        "product category|standardized product type|standard product type|standardproducttype",
    ),
    (
        "gpc_brick",
        100,
        "gpc|gpc brick|gpc code|gpc brick code|brick code|gpc category|gs# gpc|global product classification|gpcbrick",
    ),
    (
        "tags",
        100,
        "tags|tag|keywords|search keywords|schlagworte|schlagworter|etiquetas|product tags|style tags|labels"
        "|search terms|hashtags|stichworte",
    ),
    (
        "tags",
        80,
        "style|product style|stil|estilo|theme|room|room type|primary style|style name|design style|trend"
        "|lifestyle|motif",
    ),
    ("tags", 60, "tag text|occasion|season|stilrichtung|wohnstil|raum|ambiente"),
    (
        "features",
        100,
        "features|feature|feature #|features #|bullet|bullet #|bullets|bullet point|bullet point #|bullet points"
        "|bullet points #|key feature #|key features|selling point #|selling points|product feature #"
        "|product features|highlight #|highlights|product highlights|merkmale|caracteristicas|bulletpoint #"
        "|product bullet #|feature bullet #|feature bullets #|merkmal #|product highlight|bullet feature #"
        "|caracteristica #",
    ),
    (
        "option_name.0",
        100,
        "option # name|option name #|options # name|option name|attribute # name|attribute name #",
    ),
    (
        "option_value.0",
        100,
        "option # value|option value #|option #|variants option #|option value|options # value"
        "|attribute # value s|attribute # value|attribute # values|attribute value #",
    ),
)
