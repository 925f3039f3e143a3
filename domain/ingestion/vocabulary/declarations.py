"""What headers of pictures, states and declarations are called, and those known to lie outside the catalogue."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, int, str], ...]] = (
    (
        "media",
        100,
        "image|image #|images|image url|image url #|image urls|image link|image src|img url|img|photo|photo #"
        "|photos|picture|pictures|picture #|url image|additional images url|additional image|additional image #"
        "|additional image link|additional image url|additional images|image file|image name|image # url"
        "|image link #|images # src|images # url|images src|images url|bild|bilder|bild #|bild url|bild url #"
        "|bilder url|imagen|imagen #|imagenes|foto|fotos|image file name|media|media url|thumbnail|thumbnail url"
        "|thumbnail image url|secondary image|secondary image #|alt image #|alternate image #|alternate image"
        "|lifestyle image|lifestyle image #|silo image|image filename|images #|product image|product image #"
        "|product images|product image url|gallery|gallery image #|other image #|other image url#"
        "|other image url #|image thumbnail|picture url|img #|image location|image links|url images|media # url"
        "|media url #|photo url|imageurl|pic #|pic",
    ),
    (
        "media.hero",
        100,
        "main image|hero image|primary image|featured image|main image url|primary image url|hero image url"
        "|hauptbild|imagen principal|base image|main image link|featured image url|main picture|main photo|hero"
        "|primary photo|cover image|default image|featured image src|main image src|hauptbild url",
    ),
    (
        "variant_media",
        100,
        "variant image|variant image url|variation image|variant images|variants image|swatch image"
        "|variants featured image src|variant image src",
    ),
    ("media_alt", 100, "image alt text|image alt|alt text|images # alt|image alt tag"),
    ("media_position", 100, "image position|images # position|media position"),
    (
        "status",
        100,
        "status|product status|item status|lifecycle status|sku status|life cycle|lifecycle|state of item"
        "|produktstatus|estado",
    ),
    (
        "compliance.country_of_origin",
        100,
        "origin|country of origin|country of manufacture|coo|made in|origin country|country|vendor origin"
        "|countryoforigin|manufacturing country|pais de origen|herkunftsland|ursprungsland|country origin"
        "|product origin|country code of origin|country code|product country of origin|pais|pais origen|land",
    ),
    (
        "compliance.tsca_title_vi",
        100,
        "tsca|tsca title vi|tsca compliant|composite wood carb code|composite wood carb code # #|carb code"
        "|carb compliant|tsca title vi compliant|formaldehyde compliant"
        "|tsca title vi compliant formaldehyde emissions|carb|carb phase ii|carb phase # compliant"
        "|tsca title # compliant|tsca title #|tscatitlevicompliantformaldehydeemissions",
    ),
    (
        "compliance.sturdy_act",
        100,
        "sturdy|sturdy act|sturdy compliant|sturdy act compliant|astm f2057|astm f2057 23|tip over compliant"
        "|sturdy act compliance",
    ),
    ("compliance.stability_rating", 100, "stability rating|tip rating|stability"),
    (
        "compliance.ca_tb117_2013",
        100,
        "tb117|tb# #|tb # #|tb117 2013|ca tb117|ca tb117 2013|ca tb# #|caltb117 2013compliant|cal tb117"
        "|cal tb117 2013|california tb117|tb 117 2013|tb 117|ca tb 117 2013|cal tb 117|cal tb 117 2013"
        "|california technical bulletin 117 2013|flammability compliant",
    ),
    (
        "compliance.prop65_warning",
        100,
        "prop65|prop #|prop 65|prop65 warning|prop # warning|prop 65 warning|california prop 65"
        "|california proposition 65 warning required|proposition 65|ca prop 65|prop 65 required"
        "|california proposition # warning required|additional warning or disclaimers|prop 65 warning required"
        "|california proposition 65|ca prop #|prop 65 y n",
    ),
    (
        "compliance.prop65_chemicals",
        100,
        "prop 65 chemicals|prop65 chemicals|prop # chemicals|prop 65 chemical|prop # chemical|prop 65 chemical s",
    ),
    (
        "discontinued",
        100,
        "discontinued|is discontinued|discontinued flag|discontinued y n|discontinued status|eingestellt"
        "|descontinuado|disc|obsolete|closeout discontinued",
    ),
    ("discontinued", 60, "discontinued item|discontinued yes no|phase out|being discontinued"),
    (
        "replacement_sku",
        100,
        "replacement sku|replaced by|replacement|replacement item|substitute sku|superseded by"
        "|replacement item number|substitute|new sku",
    ),
    (
        "ignore",
        100,
        "url|link|product url|product link|page url|product page url|website|website url|seo title"
        "|seo description|seo title #char|seo title 70char|seo description 160char|meta title|meta description"
        "|single item set or part|record kind|list order|page|volume|volume cuft|cuft|cube|cubic feet|cbm|cu ft"
        "|cft|harmonized code|hs code|hts code|hts|tariff code|customs code|zolltarifnummer|warranty"
        "|warranty length|garantia|garantie|care|product care|care instructions|cleaning|designer|rating count"
        "|average rating|review count|reviews|rating|reviews count|sold|published|published at|published scope"
        "|created at|updated at|date added|last updated|gift card|variant inventory tracker"
        "|variant inventory policy|variant fulfillment service|variant requires shipping|variant taxable"
        "|variant tax code|tax code|taxable|requires shipping|inventory policy|fulfillment service|condition"
        "|google shopping condition|google shopping gender|google shopping age group"
        "|google shopping adwords grouping|google shopping adwords labels|google shopping custom product"
        "|google shopping custom label #|custom label #|gender|age group|identifier exists|adult|is bundle"
        "|unit price total measure|unit price total measure unit|unit price base measure"
        "|unit price base measure unit|option # linked to|qty interval|pack qty|pack quantity|case pack"
        "|inner pack|min qty|minimum order quantity|moq|uom|unit of measure|selling unit|nmfc|nmfc code"
        "|nmfc number|nmfc #|nmfc item|sellable online|other colors|x #|column #|ship type"
        "|ship type small parcel ltl|ship method|shipping method|distressed finish|distressed finish y n|notes"
        "|note|comments|remarks|bemerkung|observaciones|free shipping|short description red text"
        "|google custom product|complementary products|related products|related products settings"
        "|search product boosts|admin graphql api id|template suffix|weight capacity|max load|maximum load"
        "|max weight|peso maximo soportado|terminos garantia|garantia producto|size fit|certifications|msds|pdf"
        "|assembly instructions|assembly instructions url|instruction sheet|spec sheet|shipping cost"
        "|shipping price|freight cost|shipping|mc|num variants|inventory tracker|inventory management|row"
        "|row number|priority|sort order|position|is parent|video description|glb|obj|model glb|model obj"
        "|color code|finish code|fabric code|grade|fabric grade"
        "|brand img url|brand id|brand created at|brand updated at|index|unnamed #|carton volume|package volume"
        "|quantity per carton|pieces per carton|qty per carton|units per carton|pcs per ctn|pcs ctn"
        "|price valid until|offers url|offers price valid until|currency symbol|shipping volume|pallet quantity"
        "|container quantity|number of reviews|stars|variants product id|variants position|variants created at"
        "|variants updated at|variants requires shipping|variants taxable|images # id|images # width"
        "|images # height|images # created at|images # updated at|images # product id|images # variant ids"
        "|options # position|options # id|options # values|vendor id|supplier id|brand url|exclusive"
        "|foa exclusive|exclusive item|low stock amount|low stock|low stock threshold|reorder point|tax status"
        "|visibility in catalog|is featured|backorders allowed|sold individually|allow customer reviews"
        "|purchase note|catalog visibility",
    ),
)
