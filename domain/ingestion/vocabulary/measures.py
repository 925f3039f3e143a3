"""What headers of measures, materials, colours, boxes and rugs are called."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, int, str], ...]] = (
    (
        "dimensions",
        100,
        "dimensions|dimension|product dimensions|product dimension|product size|overall dimensions"
        "|item dimensions|dims|measurements|abmessungen|masse|masse b x h x t|dimensiones|medidas|overall dims"
        "|product dims|assembled dimensions|size dimensions|dimensions w x d x h|dimensions wxdxh"
        "|dimensions l x w x h|wxdxh|lxwxh|w x d x h|l x w x h|w d h|size w x d x h|overall dimension"
        "|dimensions overall|item size|produktabmessungen|dimension inch|masse bxhxt|masse bxtxh|bxhxt|bxtxh"
        "|masse b x t x h|grosse|overall size|product measurements|dimensions lxwxh|dimension lxwxh"
        "|dimension wxdxh|size wxdxh|size lxwxh|dimensions w d h|abmessungen bxhxt|abmessungen bxtxh"
        "|abmessungen b x t x h|abmessungen b x h x t|dimensions hxwxd|hxwxd|dimensions l w h"
        "|medidas ancho x fondo x alto",
    ),
    (
        "dimensions",
        50,
        "size|tamano|medida|assembled size",
    ),
    (
        "dimensions.width",
        100,
        "width|w|wd|overall width|product width|item width|assembled width|breite|ancho|anchura|total width"
        "|width w|b|b cm|gesamtbreite|overall w|dimensions width|product w|item w|assembled product width"
        "|width overall|overallwidth sidetoside|largeur|breedte|size width|dim w|dimension width|log width"
        "|product dimensions width|model dimensions inches x|unit width|measurements width|dimensions w"
        "|dimension w|dims width|w overall|product min width|min width|ancho total",
    ),
    (
        "dimensions.width",
        60,
        "product max width|max width|maximum width",
    ),
    (
        "dimensions.depth",
        100,
        "depth|d|dp|overall depth|product depth|item depth|assembled depth|tiefe|fondo|profundidad|total depth|t"
        "|gesamttiefe|overall d|dimensions depth|product d|item d|assembled product depth|depth overall"
        "|overalldepth fronttoback|profondeur|diepte|size depth|dim d|dimension depth|log depth"
        "|product dimensions depth|model dimensions inches y|unit depth|measurements depth|dimensions d"
        "|dimension d|dims depth|d overall|product min depth|min depth",
    ),
    (
        "dimensions.depth",
        60,
        "product max depth|max depth|maximum depth",
    ),
    (
        "dimensions.height",
        100,
        "height|h|ht|overall height|product height|item height|assembled height|hohe|hoehe|alto|altura"
        "|total height|gesamthohe|overall h|dimensions height|product h|item h|assembled product height"
        "|height overall|overallheight toptobottom|hauteur|hoogte|size height|dim h|dimension height|log height"
        "|product dimensions height|model dimensions inches z|unit height|measurements height|dimensions h"
        "|dimension h|dims height|h overall|product min height|min height|alto total",
    ),
    (
        "dimensions.height",
        60,
        "product max height|max height|maximum height",
    ),
    (
        "dimensions.length",
        100,
        "length|l|overall length|product length|item length|lange|laenge|largo|longitud|total length|overall l"
        "|dimensions length|product l|item l|len|assembled length|assembled product length|longueur|lengte|dim l"
        "|dimension length|log length|product dimensions length|size length|dimensions l|dimension l|dims length"
        "|product min length|min length",
    ),
    (
        "dimensions.diameter",
        100,
        "diameter|dia|durchmesser|diametro|overall diameter|product diameter|dimensions diameter|item diameter"
        "|diam|base diameter overall",
    ),
    (
        "dimensions.seat_height",
        100,
        "seat height|seat ht|seat h|sitzhohe|altura del asiento|altura asiento|seat height floor to seat"
        "|dimensions seat height|product seat height|seatheight floortoseat|seat hgt|hauteur d assise",
    ),
    (
        "dimensions.seat_depth",
        100,
        "seat depth|seat dp|seat d|sitztiefe|profundidad del asiento|seat depth front to back"
        "|dimensions seat depth|seatdepth fronttoback|profundidad asiento",
    ),
    ("dimensions.seat_height", 80, "sh"),
    ("dimensions.seat_depth", 80, "sd"),
    (
        "dimensions.arm_height",
        100,
        "arm height|arm ht|armrest height|arm rest height|arm h|armlehnenhohe|altura del brazo"
        "|dimensions arm height|arm height floor to arm|altura brazo",
    ),
    (
        "dimensions.clearance",
        100,
        "clearance|floor clearance|leg clearance|clearance height|free height under furniture|under clearance"
        "|bodenfreiheit|ground clearance|clearancefromfloor|dimensions clearance|underbed clearance"
        "|clearancefromfloortoundersideofbed",
    ),
    (
        "weight",
        100,
        "n w|nw|weight|product weight|item weight|net weight|actual product weight|variant grams|variant weight|gewicht"
        "|nettogewicht|peso|peso del producto|peso neto|overall product weight|overallproductweight|wt|weight lb"
        "|assembled weight|unit weight|weight value|total weight|produktgewicht|grams|item wt|product wt"
        "|weight net|poids|dimensions weight|variants grams|variants weight|product weight net|artikelgewicht"
        "|dead weight",
    ),
    (
        "weight",
        70,
        "shipping weight|ship weight|gross weight|bruttogewicht|package weight|versandgewicht|peso bruto|gross wt",
    ),
    (
        "cartons.0.weight",
        90,
        "g w|gw|shipping weight|ship weight|gross weight|package weight|carton weight|box weight|shipping weight box #"
        "|carton weight box #|box # weight|carton # weight|weight box #|package # weight|ship wt|shipping wt"
        "|ctn weight|ctn wt|package weight #|carton wt|packed weight|box weight #|carton weight #"
        "|verpackungsgewicht|versandgewicht|carton gross weight|peso bruto|bruttogewicht|peso del paquete"
        "|gross weight carton|parcel weight|parcel # weight",
    ),
    (
        "cartons.0.width",
        100,
        "shipping width|carton width|box width|package width|carton width box #|shipping width box #|box # width"
        "|carton # width|ship width|width box #|package # width|shipping w|carton w|ctn width|ctn w|packed width"
        "|ship w|box width #|carton width #|paketbreite|verpackungsbreite|package w|box w|ancho del paquete"
        "|parcel width|parcel # width|packaging width|box # w|carton # w",
    ),
    (
        "cartons.0.depth",
        100,
        "shipping length|carton length|box length|package length|carton length box #|shipping length box #"
        "|box # length|carton # length|ship length|length box #|package # length|shipping l|carton l|ctn length"
        "|ctn l|packed length|ship l|box length #|carton length #|paketlange|verpackungslange|package l|box l"
        "|largo del paquete|parcel length|parcel # length|packaging length|box # l|carton # l",
    ),
    (
        "cartons.0.depth",
        95,
        "shipping depth|carton depth|box depth|package depth|carton depth box #|shipping depth box #|box # depth"
        "|carton # depth|ship depth|depth box #|package # depth|shipping d|carton d|ctn depth|packed depth"
        "|box depth #|carton depth #|pakettiefe|verpackungstiefe|package d|box d|fondo del paquete"
        "|packaging depth|box # d|carton # d",
    ),
    (
        "cartons.0.height",
        100,
        "shipping height|carton height|box height|package height|carton height box #|shipping height box #"
        "|box # height|carton # height|ship height|height box #|package # height|shipping h|carton h|ctn height"
        "|ctn h|packed height|ship h|box height #|carton height #|pakethohe|verpackungshohe|package h|box h"
        "|alto del paquete|parcel height|parcel # height|packaging height|box # h|carton # h",
    ),
    (
        "cartons",
        100,
        "packages details|package details|packaging details|carton details|packages|carton dimensions details"
        "|packaging|box details",
    ),
    (
        "cartons.0.dimensions",
        90,
        "carton dimensions|shipping dimensions|box dimensions|package dimensions|carton size|box size"
        "|package size|ship dims|carton dims|ctn size|packed dimensions|shipping dims|verpackungsmasse"
        "|karton masse|carton dimension|box # dimensions|carton # dimensions|packaging dimensions",
    ),
    (
        "carton_count",
        100,
        "of boxes|of cartons|number of boxes|packages number|carton count|no of cartons|number of cartons|boxes|cartons|box count"
        "|total boxes|no of boxes|packages count|number of packages|anzahl pakete|anzahl kartons|package count"
        "|cartons per item|cartons per set|numero de cajas|cantidad de cajas|total cartons|ctns|# of boxes"
        "|# of cartons|packstucke",
    ),
    (
        "components",
        100,
        "parts for group items|components|parts|set components|included items|bundle items|kit components"
        "|bundle components|set includes skus|component skus|component items|components sku|set items|kit items"
        "|bestandteile|parts list",
    ),
    (
        "materials",
        100,
        "material|materials|main material|primary material|fiber|fibre|fiber content|fabric|fabric content"
        "|material del tapiz|material de la estructura|materiales|upholstery material|frame material"
        "|option # content|content fiber|composition|materialien|hauptmaterial|product material|material content"
        "|rug fiber|pile material|material #|materials #|secondary material|cover material|leg material"
        "|top material|construction material|bezug|bezugsmaterial|stoff|tela|materialzusammensetzung"
        "|base material|wood species|seat material|fabric composition|composicion|material composition"
        "|material description|gestellmaterial",
    ),
    ("materials", 70, "content"),
    ("rug.indoor_outdoor", 60, "use|usage"),
    (
        "colour",
        100,
        "color|colour|main color|color name|colour name|product color|option # value color|farbe|color del tapiz"
        "|primary color|item color|hauptfarbe|colors|colours|upholstery color|fabric color|exact color"
        "|color description|colorway|product colour|farbton|main colour|colour description|bezugsfarbe"
        "|ground color|background color|color del producto|farbname|color #",
    ),
    (
        "colour",
        55,
        "navigational color|color family|colour family|farbfamilie|famille de couleur|color group|main color family",
    ),
    (
        "colour",
        60,
        "color del colchon|frame color|leg color|cushion color|base color|couleur|color finish|colour finish",
    ),
    (
        "finish",
        100,
        "finish|wood finish|finish name|product finish|finish color|metal finish|frame finish|leg finish"
        "|oberflache|acabado|finish description|wood tone|base finish|finish #|ausfuhrung",
    ),
    (
        "assembly_required",
        100,
        "assembly required|assembly|requires assembly|assembly required y n|is assembly required"
        "|adult assembly required|k d|kd|knock down|montage erforderlich|aufbau erforderlich|requiere armado"
        "|level of assembly|assembly level|assembly needed|knocked down|montage|rta|ready to assemble"
        "|needs assembly|assembly req|requiere ensamble",
    ),
    (
        "white_glove",
        100,
        "white glove|white glove delivery|white glove required|white glove eligible|white glove service",
    ),
    (
        "freight_class",
        100,
        "freight class|ltl class|ltl freight class|nmfc class|nmfc freight class|class freight|frt class",
    ),
    (
        "rug.shape",
        100,
        "shape|rug shape|form|forma|product shape",
    ),
    (
        "rug.size_text",
        100,
        "rug size|size text|rug sizes|actual size|actual rug size|rug actual size|exact size|teppichgrosse"
        "|size feet|size ft|size ft in",
    ),
    (
        "rug.nominal",
        100,
        "nominal size|nominal|rug nominal size|size nominal|standard size|approx size",
    ),
    (
        "rug.construction",
        100,
        "construction|rug construction|weave|technique|weave type|quality|weave construction|manufacturing method"
        "|construction type|rug technique|knupfart|webart|production method|construction method|rug weave",
    ),
    (
        "rug.pile_height",
        100,
        "pile height|pile|pile ht|pile thickness|florhohe|altura del pelo|rug pile height|pile depth",
    ),
    (
        "rug.indoor_outdoor",
        100,
        "indoor outdoor|indoor outdoor use|indoor or outdoor|rug use|suitable for outdoor|location use|inside outside",
    ),
    (
        "axes.Size",
        90,
        "size|size name|bed size|mattress size|bedding size|variant size|talla|grosse|tamano|sizes",
    ),
    (
        "axes.Orientation",
        90,
        "orientation|configuration|facing|arm orientation|chaise orientation|hand facing",
    ),
    (
        "axes.Firmness",
        90,
        "firmness|comfort level|nivel de confort|hartegrad",
    ),
    (
        "axes",
        100,
        "variations|variants options|variation|attributes variations",
    ),
    (
        "dimension_unit",
        100,
        "dimension unit|dimensions unit|dimension uom|size unit|unit of dimension|length unit|dim uom"
        "|measure unit|dimension units|dimensions units|size uom"
        "|dimensions width unit|dimensions depth unit|dimensions height unit|dimensions length unit"
        "|product dimension unit|measurement unit|dim unit",
    ),
    (
        "weight_unit",
        100,
        "weight unit|variant weight unit|weight uom|gewichtseinheit|weight units|unit of weight|unidad de peso"
        "|variants weight unit|product weight unit|wt unit|wt uom",
    ),
)
