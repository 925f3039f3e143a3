"""Words for sides, weights, colours, materials and the parts of furniture that have them."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, str], ...]] = (
    (
        "width",
        "width|widths|wide|wdth|wd|breite|breiten|breit|largeur|larg|breedte|breed|ancho|anchura|largura|larghezza"
        "|largh|bredd|bredde|leveys|szerokość|szer|šířka|ширин*|шир|breadth|breath|larghezze|larguras|anchuras"
        "|largeurs|breddes|szerok*|bredden|laius|genişlik",
    ),
    (
        "depth",
        "depth|depths|deep|dpth|dp|tiefe|tiefen|tief|profondeur|prof|diepte|diep|fondo|profundidad|profundidade"
        "|profondità|djup|dybde|syvyys|głębokość|głęb|hloubka|глубин*|глуб|profondeurs|profundidades"
        "|dybden|djupet|głębok*|sügavus|derinlik",
    ),
    (
        "height",
        "height|heights|high|hgt|ht|höhe|höhen|hoch|hauteur|haut|hoogte|hoog|alto|altura|altezza|altez|höjd|højde"
        "|høyde|korkeus|wysokość|wys|výška|высот*|выс|hauteurs|alturas|höjden|høyden|højden|wysokoś*"
        "|kõrgus|yükseklik",
    ),
    (
        "length",
        "length|lengths|len|lgth|lgt|länge|längen|longueur|longeur|lengte|largo|longitud|comprimento|lunghezza|lungh"
        "|längd|længde|lengde|pituus|długość|dług|délka|длин*|дл|longueurs|larghi|comprimentos|längden|lengden"
        "|længden|długoś*|pikkus|uzunluk",
    ),
    (
        "diameter",
        "diameter|dia|diam|durchmesser|dm|diamètre|diametre|doorsnede|diámetro|diametro|halkaisija|średnica|průměr"
        "|диаметр*|ø|durchm|średnicy|diametrul|çap",
    ),
    (
        "thickness",
        "thickness|thick|stärke|dicke|épaisseur|dikte|grosor|espesor|espessura|spessore|tjocklek|tykkelse|paksuus"
        "|grubość|tloušťka|толщин*|gauge",
    ),
    (
        "weight",
        "weight|weights|wt|wgt|mass|grams|gewicht|gewichte|poids|peso|pesos|vikt|vægt|vekt|paino|waga|masa|hmotnost"
        "|вес|веса|масса|массы|wght|pesi|gewichts|vekten|vikten|ciężar*|ваг*|kaal|ağırlık",
    ),
    (
        "dims",
        "mea|measure|measures|dimension*|dims|dim|measurement*|abmessung*|abm|maße|mesures|encombrement|afmeting*|afm"
        "|medidas|medida|mesure|dimensões|dimensione|dimensioni|misure|misura|ingombro|mått|måtten|mål|mitat|mitta"
        "|wymiar*|rozměr*|габарит*|abmaß|abmaße|dimensión|dimensiónes|größenangabe|größenangaben|maßangaben"
        "|masse l x b x h|размерность|dimensiuni|gabaryt*|buitenmaat|außenmaß|außenmaße|gesamtmaß|gesamtmaße"
        "|totaalmaat",
    ),
    (
        "size",
        "size|sizes|größe|größen|groesse|format|taille|tailles|maat|maten|tamaño|tamaños|talla|tamanho|formato|grandezza"
        "|taglia|storlek|størrelse|koko|rozmiar*|velikost|размер*",
    ),
    ("axes_order", "wxdxh|lxwxh|wxhxd|hxwxd|bxtxh|bxhxt|lxbxh|hxbxt|lxlxh|lxpxh|bxdxh|дхшхв|шхгхв|bxhxd"),
    (
        "volume",
        "volume|volumes|vol|cubage|cuft|cbm|cft|cube|cubic|m3|volumen|rauminhalt|inhalt|volym|rumfang|tilavuus"
        "|objętość|kubatura|objem|объем*|inhoud|dim weight|dimensional weight|volumetric|volumetrisch|volumétrique"
        "|volumétrico|volumetrico|volumengewicht|volumegewicht|objętościow*|kubikmeter|kubik|cubicaje|cubicfeet"
        "|kubatur*|м3|мз|litre|litres|liter",
    ),
    ("area", "area|sqft|sqm|m2|fläche|superficie|oppervlakte|powierzchnia|площад*"),
    (
        "capacity",
        "capacity|load|traglast|tragfähigkeit|belastbarkeit|belastbar|charge|capacité|draagvermogen|belasting|carga|capacidad|portata|capienza|udźwig|obciążenie|nośność|nosnost|нагрузк*|вместимост*|грузоподъ*|bärkraft|maxbelastning|belastning|kantavuus|kuormitus",
    ),
    ("angle", "angle|swivel|winkel|recline|tilt"),
    (
        "seat",
        "seat|seating|sitz|sitzfläche|sitzflächen|sitzen|assise|siège|zit|zitting|asiento|seduta|sedile|assento|sits"
        "|sitt|sæde|sete|sitte|istuin|istuimen|siedzisk*|sedák*|sedu|сиденья|сиденье|сидения|сидень*|посадк*|sidde"
        "|sittplats|zithoek|posti a sedere|asientos|siddehøjde",
    ),
    (
        "arm",
        "arm|arms|armrest|armrests|armlehne|armlehnen|armlehn|accoudoir|accoudoirs|armleuning|armleuningen|brazo|brazos|reposabrazos|apoyabrazos|bracciolo|braccioli|braço|armstöd|armlæn|armlene|käsinoja|podłokietnik*|područk*|подлокотник*",
    ),
    (
        "back",
        "back|backrest|rücken|rückenlehne|lehne|lehnen|dossier|rugleuning|respaldo|schienale|encosto|ryggstöd|ryg|rygg|ryglæn|selkänoja|oparci*|opěradl*|спинк*",
    ),
    (
        "leg",
        "leg|legs|foot|feet|fuß|füße|füßen|bein|beine|beinen|pied|pieds|piètement|poot|poten|pata|patas|gamba|gambe|piedi|piede|perna|pernas|pés|ben|benen|jalka|jalat|jalan|noga|nogi|nóg|nóżki|nožk*|ножк*|ножек|опор*|kufe|kufen",
    ),
    (
        "frame",
        "frame|frames|gestell|gestelle|rahmen|korpus|structure|châssis|cadre|onderstel|frame|romp|estructura|armazón|struttura|telaio|estrutura|stomme|stativ|stel|ramme|runko|rama|ramy|stelaż*|korpus*|rám|konstrukcj*|каркас*|корпус*|рама|рамы|carcase|carcass",
    ),
    (
        "base",
        "base|pedestal|untergestell|sockel|socle|embase|voet|sokkel|basamento|bas|fod|jalusta|podstaw*|podnož*|основани*|подстоль*",
    ),
    (
        "tabletop",
        "tabletop|worktop|top|tischplatte|platte|arbeitsplatte|plateau|tafelblad|blad|tablero|encimera|piano|bordsskiva|skiva|bordplade|plade|blat|blatu|deska|столешниц*",
    ),
    (
        "front",
        "front|fronts|door|doors|tür|türen|front*|façade|portes|porte|deur|deuren|puerta|puertas|anta|ante|lucka|dörr|låge|drzwi|dveře|фасад*|двер*",
    ),
    (
        "drawer",
        "drawer|drawers|schublade|schubladen|schubkasten|schubkästen|tiroir|tiroirs|lade|laden|cajón|cajones|cassetto|cassetti|gaveta|låda|lådor|skuffe|skuffer|laatikko|szuflad*|zásuvk*|ящик*",
    ),
    (
        "shelf",
        "shelf|shelves|shelving|einlegeboden|einlegeböden|fach|fächer|regalboden|étagère|étagères|plank|planken|legplank|estante|estantes|balda|ripiano|ripiani|hylla|hyllplan|hylde|hylder|hylly|półk*|polic*|полк*",
    ),
    (
        "mattress",
        "mattress|mattresses|matratze|matratzen|matelas|matras|matrassen|colchón|materasso|colchão|madrass|madras|patja|materac*|matrac*|матрас*|sleeping|liegefläche|liegeflächen|liege|couchage|ligvlak|slaapmaat|slaapgedeelte|spalni*|спальн*",
    ),
    (
        "cushion",
        "cushion|cushions|pillow|pillows|kissen|polster|coussin|coussins|kussen|kussens|cojín|cojines|cuscino|cuscini|almofada|kudde|dyna|pude|hynde|tyyny|poduszk*|polštář*|подушк*",
    ),
    (
        "headboard",
        "headboard|kopfteil|tête|hoofdbord|cabecero|testiera|cabeceira|sänggavel|gavel|sengegavl|zagłów*|čelo|изголовь*",
    ),
    (
        "insert",
        "leaf|leaves|extension|extensions|ansteckplatte|einlegeplatte|rallonge|rallonges|verlengblad|inlegblad|extensible|prolunga|allunga|iläggsskiva|tillægsplade|wkład*|вставк*|раскладн*",
    ),
    (
        "shade",
        "shade|lampshade|schirm|lampenschirm|abat|jour|lampenkap|pantalla|paralume|lampskärm|skærm|abażur|klosz|плафон*|абажур*",
    ),
    ("canopy", "canopy|backplate|baldachin|rosette|rosone"),
    (
        "inner",
        "interior|inside|internal|inner|innen|innere|intérieur|intérieure|intern|interno|interna|binnen|binnenmaat|indre|inre|invändig|sisä|wewnętrzn*|vnitřní|внутренн*|clear|lichte",
    ),
    (
        "cable",
        "cable|cord|wire|kabel|kabels|câble|snoer|cavo|sladd|ledning|johto|przewód|кабел*|шнур*|chain|kette|chaîne|cadena|catena",
    ),
    ("pile", "pile|flor|florhöhe|poil|poils|pool|pelo|lugg|luv|runa|vlas|ворс*"),
    ("step_foot", "clearance|ground|floor|bodenfreiheit|underneath|bodenabstand"),
    (
        "color",
        "color|colors|colour|colours|clr|farbe|farben|farbton|farbtöne|farb|couleur|couleurs|coloris|teinte|kleur"
        "|kleuren|color|colores|cor|cores|colore|colori|tinta|färg|färger|kulör|farve|farver|farge|farger|väri|värit"
        "|kolor|kolory|koloru|kolorystyka|barva|barvy|цвет*|расцветк*|ral|colorway|colourway|färgen|fargen|farven"
        "|tonalité|tonalidad|tonalità|tono|hue|kolorze|окраск*|цвета",
    ),
    (
        "finish",
        "finish|finishes|stain|lacquer|glaze|oberfläche|oberflächen|ausführung|ausführungen|lackierung|dekor|beize|finition|finitions|laque|décor|afwerking|afwerkingen|decor|acabado|acabados|finitura|finiture|laccatura|acabamento|ytbehandling|yta|finnish|overflade|overfladebehandling|overflate|pinta|pintakäsittely|viimeistely|wykończeni*|dekor|povrch*|отделк*|покрыти*|декор",
    ),
    (
        "material",
        "material|materials|matl|composition|content|fiber|fibre|werkstoff|werkstoffe|materialien|materiaal"
        "|materialen|matière|matières|matériau|matériaux|matériel|composición|composizione|materiales|materia"
        "|materiali|materiale|materiais|materiaali|materiał*|materiál*|материал*|состав*|sammansättning|werkstoffen"
        "|materialet|skład|složení|сырь*|fibra|fibras|fibras textiles|zusammensetzung|materialzusammensetzung"
        "|samenstelling|composição|materiały",
    ),
    (
        "wood",
        "wood|timber|holz|holzart|holzarten|bois|hout|houtsoort|madera|legno|madeira|träslag|trä|træ|træsort|tre|puu|drewn*|dřev*|древесин*|дерев*|порода",
    ),
    ("metal", "metal|metall|métal|metaal|metallo|metalli|metalu|металл*|steel|stahl"),
    (
        "fabric",
        "fabric|upholstery|cover|textile|bezug|bezüge|bezugsstoff|stoff|stoffe|polsterung|tissu|revêtement|housse"
        "|stof|bekleding|stoffering|tejido|tela|tapicería|tapizado|funda|tessuto|rivestimento|tecido|estofo|tyg"
        "|klädsel|betræk|stof|trekk|kangas|verhoilu|tkanin*|tapicerk*|obici*|látk*|potah*|čaloun*|ткань|ткани|обивк*"
        "|чехл*|чехол|upholstered|tapizados|polster stoff|bezugsmaterial|обивочн*|meubelstof",
    ),
    (
        "filling",
        "filling|fill|padding|foam|füllung|polsterkern|rembourrage|garnissage|vulling|relleno|espuma|imbottitura|enchimento|fyllning|stoppning|fyld|fyll|täyte|wypełnieni*|výplň|наполнител*|набивк*",
    ),
    ("leather", "leather|leder|cuir|leer|cuero|piel|pelle|couro|läder|skind|skinn|nahka|skór*|kůže|кож*"),
    ("glass", "glass|glas|verre|vidrio|vetro|lasi|szkło|sklo|стекл*"),
    (
        "pattern",
        "pattern|patterns|print|muster|motif|motifs|patroon|dessin|estampado|fantasia|padrão|mönster|mønster|kuosi"
        "|wzór|wzory|vzor|узор*|рисун*|motiv|desenho|disegno|decoro|dibujo",
    ),
    (
        "shape",
        "shape|form|forme|vorm|forma|figura|form|muoto|kształt|tvar|форма|формы|formen|formato forma|kształty|форм",
    ),
    ("texture", "texture|textur|struktur|textura|texture"),
)
