"""Words for keys, names, texts, pictures, categories and what else a sheet tells of an item."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, str], ...]] = (
    (
        "sku",
        "sku|skus|артикул*|art nr|art no|art num|art number|art code|art id|cod art|codart|cod articolo|réf art"
        "|bestellnr|bestell nr|bestellnummer|ordernumber|order number|order code|artikelnr|artnr|artno|itemno"
        "|itemnumber|varenummer|varenr|artikelnummer|artikelcode|tuotekoodi|tuotenumero|indeks|sygnatura|sygnatury"
        "|stock code|stockcode|stock number|item nr|artikel id|cod prodotto|cod producto|codice prodotto"
        "|código producto|kod produktu|kod towaru|код товара|productcode|product number|produktnummer|productnummer"
        "|numer artykułu|artikelnummern|id interno|produktnr|bestelnummer|art nummer|art numer|artikel nummer"
        "|item sku code|tuotenro|tuotenumerot|tuote nro",
    ),
    (
        "gtin",
        "universal product code|gtin|gtins|ean|eans|ean13|ean8|upc|upca|barcode|barcodes|code barres|code barre"
        "|códigos de barras|código barras|código de barras|codice a barre|código universal|баркод*|jan|strichcode"
        "|streckkod|stregkode|strekkode|viivakoodi|kod kreskowy|kreskow*|čárový|штрихкод*|штрих|gencod|gencode"
        "|cod barras|cód barras|cod a barre|cod de barras|codbarras|kod ean|isbn|gtin14|ean14|universalproductcode"
        "|ean upc|streckkoder|code à barres|codes barres|código de barra|codigo barra|viivakoodit|ean code|upc code",
    ),
    ("gpc", "gpc|gpc category|gpc brick"),
    (
        "mpn",
        "mpn|mpnr|han|pn|p n|oem number|hersteller nr|herst nr",
    ),
    (
        "code",
        "code|codes|number|numbers|no|nr|num|nummer|nummern|identifier|ref|reference|referenz|réf|référence|codice"
        "|código|codigo|referencia|referência|cod|kod|kode|koodi|numer|numéro|numero|número|kennung|identification"
        "|kennzeichen|schlüssel|référence n|kodu|riferimento|referentie|номер*|код|коды|идентификатор|symbol|tunnus"
        "|číslo|identifizierung|identifizierungsspalte|identificador|identificativo|identificatie",
    ),
    ("ref", "ref|reference|referentie|referenz|réf|référence|referencia|referência|riferimento|référence n"),
    ("id", "id|ids|identifier|идентификатор|identifiant"),
    (
        "uuid",
        "uuid|guid|uid|uids",
    ),
    (
        "name",
        "name|names|title|titles|titel|bezeichnung|bez|art bez|art name|benennung|nom|intitulé|libellé|désignation"
        "|designation|naam|benaming|nombre|título|titulo|denominación|designação|nome|titolo|denominazione|namn"
        "|benämning|navn|betegnelse|nimi|nimike|otsikko|nazw*|tytuł*|název|наименовани*|номенклатур*|названи*|имя"
        "|заголов*|titre|titres|intitulés|denumire|naziv|nazov|navnet|namnet|benævnelse|tytułu|названия"
        "|sortimentsname|produktname|productnaam",
    ),
    (
        "desc",
        "description|descriptions|desc|descr|beschreibung|beschreibungen|beschreibungstext|descriptif|omschrijving"
        "|beschrijving|descripción|descripcion|descrição|descrizione|beskrivning|beskrivelse|kuvaus|opis|opisy|popis"
        "|описани*|аннотац*|omschr|beschr|besch|descrip|dscr|opisu|описания|descripciones|descrizioni|beskrivningar"
        "|leírás",
    ),
    (
        "text",
        "text|texts|copy|details|detail|content|texte|tekst|texto|testo|tekst|teksti|текст*|overview|summary"
        "|récapitulatif|romance|info|informationen|information|résumé|resume|sintesi|resumen|samenvatting"
        "|zusammenfassung|kurzinfo|blurb|narrative|writeup|teaser|intro|story|sammanfattning|sammendrag|streszczenie"
        "|тексты",
    ),
    (
        "short",
        "short|kurz|kurze|court|courte|korte|kort|corta|corto|breve|curta|lyhyt|krótk*|krátk*|кратк*|krátký"
        "|kurzer|mini|brief|brève|bref|lyhyesti",
    ),
    (
        "long",
        "long|full|detailed|lang|lange|ausführlich|longue|complète|détaillée|uitgebreide|larga|completa|detallada|estesa|dettagliata|lång|langt|pitkä|pełn*|długi|dlouh*|podrobn*|полн*|подробн*|extended",
    ),
    (
        "item",
        "spezifikationen|spécifications|especificaciones|specificaties|specifiche|trade item|merchandise|предмет*"
        "|item|items|product|products|prod|article|articles|goods|artikel|artikels|produkt|produkte|ware|waren"
        "|produit|produits|producten|producto|productos|artículo|articulo|produto|artigo|prodotto|prodotti|articolo"
        "|articoli|vara|varor|vare|varer|tuote|tuotteen|produkt*|towar*|artykuł*|zboží|výrobek|товар*|издели*"
        "|продукт*|позици*|piece|listing|furniture|möbel|moebel|meuble|meubles|meubel|meubels|mueble|muebles|mobile"
        "|mobili|mebel*|mebl*|nábytek|oferta|oferty|offre|angebot|мебел*|uvc|szt|positionen|pozycja|asortyment*"
        "|prodotti finiti|tovar|artikla|artiklu|stuks|unit sku|unitario|unitaria|unitaire|unitarios|unitária",
    ),
    (
        "overall",
        "overall|total|gesamt|ges|totale|totaal|totales|complessivo|complessiva|totalt|samlet|kokonais|całkowit*"
        "|celkov*|общ*|global|hors tout|actual|exact|approx|ca|ungefähr|std|each|unique|eindeutig|initial|standaard"
        "|comercial|commercial|текущ*|assigned|general|generale|absolut|physical|physique|fisico|físico|head to toe"
        "|side to side|front to back|top to bottom|end to end|floor to seat|floor to arm|main|haupt|principal"
        "|principale|hoofd|standard|default|real|reale|réel|réelle|faktisk|rzeczywist*|фактическ*|tatsächlich"
        "|werkelijk|effective|effektiv|effektive|max total|domyśln*|predetermin*|predefinit*",
    ),
    (
        "variant",
        "variant|variants|variante|varianten|variation|variations|option|options|opción|opzione|attribute|attributes"
        "|merkmal|attribut|atributo|attributo|kenmerk|egenskap|egenskab|wariant*|cecha|вариант*|разновидност*"
        "|variante|характеристик*|модификац*|propiedad|propiedades|propriedade|propriedades|variação|variações"
        "|variaciones|variación|opzioni|optie|opties|valgmulighed",
    ),
    (
        "value",
        "value|values|wert|werte|valeur|valeurs|waarde|valor|valores|valore|valori|värde|værdi|verdi|arvo|wartość|hodnota|значени*|level|levels",
    ),
    (
        "parent",
        "parent|master|mutter|vater|stamm|eltern|parente|ouder|padre|родител*|föräldra|forelder|handle|slug|nadrzędn*"
        "|tmpl|template|pai|kopfartikel|hauptartikel|basisartikel|hoofdartikel|nadřazen*|pattern id|genitore|forælder"
        "|överordnad|hauptprodukt|basisprodukt|moederartikel",
    ),
    ("family", "family|famille|familie|familia|famiglia|rodzin*|семейств*"),
    (
        "group",
        "family|group|groups|gruppe|gruppen|famille|groupe|groep|familie|familia|grupo|gruppo|perhe|ryhmä|grupa|grupy|rodzin*|skupin*|групп*|семейств*",
    ),
    (
        "supplier",
        "supplier|suppl|vend|vendeur|suppliers|vendor|vendors|lieferant|lieferanten|fournisseur|leverancier"
        "|leveranciers|proveedor|fornecedor|fornitore|leverantör|leverantörs|leverandør|toimittaja|dostawc*"
        "|dodavatel*|поставщик*|seller|merchant|distributor|kred|kreditor|lev|leverantörens|leverandørens|vendedor"
        "|venditore|verkoper|продавц*|sprzedawc*|forn|lief|fornec|prov",
    ),
    (
        "maker",
        "manufacturer|manufacturers|mfr|mfg|maker|producer|oem|hersteller|herstellers|produzent|fabricant|fabrikant"
        "|fabrikants|producent|fabricante|produttore|tillverkare|tillverkarens|producentens|produsent|valmistaja"
        "|valmistajan|producen*|wytwórc*|výrobc*|výrobce|производител*|изготовител*|tillverk|herst|fabr|fabric",
    ),
    (
        "brand",
        "brand|brands|marke|marken|marque|marques|merk|merken|marca|marcas|marchio|varumärke|mærke|merke|merkki"
        "|tuotemerkki|mark*|značk*|бренд*|марка|марки|label|marki|merknaam|markenname|hausmarke|varumärken|brändi"
        "|торговая марка|trademark|trade mark",
    ),
    (
        "collection",
        "collection|collections|series|serie|serien|line|programm|modellreihe|kollektion|produktlinie|modellfamilie"
        "|gamme|série|collectie|reeks|lijn|colección|coleccion|línea|linea|coleção|linha|collezione|gamma|famiglia"
        "|kollektion|sarja|mallisto|kolekcj*|seri*|kolekc*|řada|коллекци*|серия|серии|линейк*|suite|range|program"
        "|kollektionen|serii|sarjat|seriens|gammes|collections name|linje|linii|modellserie|möbelserie|programme"
        "|programma",
    ),
    (
        "model",
        "typen|model|models|modell|modelle|modèle|modelo|modelos|modello|modelli|malli|modelu|модел*|design|style no",
    ),
    (
        "category",
        "category|categories|cat|catg|ctg|kategorie|kategorien|warengruppe|warengruppen|artikelgruppe|produktgruppe"
        "|wgr|catégorie|categorie|catégories|categorieën|rubrik|rubriek|rayon|productgroep|categoría|categorías"
        "|categoria|categorias|sección|categorie|categoria|reparto|tipologia|kategori|kategorier|varugrupp|varegruppe"
        "|tuoteryhmä|kategoria|kategori*|категори*|раздел*|рубрик*|breadcrumb*|department|taxonomy|classification"
        "|grupa towarowa|typologie|departamento|département|abteilung|afdeling|avdeling|avdelning|osasto|dział"
        "|корнев*|categ|kateg|sortiment|hauptgruppe|hoofdgroep|hauptwarengruppe|produktkategorie|menu",
    ),
    ("sub", "sub|unter|sous|sotto|under|ala|secondary|second"),
    (
        "subcategory",
        "subcategory|subcategories|subcat|unterkategorie|untergruppe|sous catégorie|sous famille|subcategoría"
        "|subcategoria|sottocategoria|sottogruppo|subcategorie|subfamilia|underkategori|undergrupp|undergruppe"
        "|alakategoria|podkategori*|podgrupa|подкатегори*|подраздел*|подгруппа|subclass|subdepartment|subcateg"
        "|subkategorie|subcategorias|subcategorías|sottocategorie|sous rubrique|subrubriek|subgroep|unterwarengruppe"
        "|podkategoria|undervaregruppe",
    ),
    ("type", "type|types|typ|art|tipo|tipos|tyyppi|typu|rodzaj|druh|тип|типы|вид|kind|class|soort|sort|sorte"),
    (
        "google",
        "google|facebook|meta|amazon|ebay|wayfair|etsy|taric|eclass|etim|unspsc|asin|fsn|moin|lazada|shopee|walmart"
        "|overstock|zalando|otto|kaufland|mano|manomano|cdiscount|ozon|wildberries|allegro|target tcin|tcin",
    ),
    ("position", "position|sort|order|rank|sequence|reihenfolge|ordre|volgorde|orden|ordine|kolejność|порядок"),
    ("chemical", "chemical|chemicals|substance|substances"),
    ("seo", "seo|meta|canonical|redirect|og"),
    (
        "customs",
        "customs|tariff|hs|hts|harmonized|zolltarif|zoll|zolltarifnummer|zolltarifnr|statistische|intrastat|douane|douanier|goederencode|arancel|arancelario|dogana|doganale|tull|told|tulli|celn*|celní|тнвэд|тн вэд|таможен*|commodity|taric|warennummer|nomenclature",
    ),
    (
        "country",
        "country|countries|coo|land|länder|ursprungsland|herkunft|herkunftsland|herstellungsland|produktionsland|pays|país"
        "|pais|paese|país|land|maa|kraj|země|стран*",
    ),
    (
        "origin",
        "origin|originating|made in|manufactured in|ursprung|ursprungs|herkunft|herkunfts|herstellung|herstellungs"
        "|produktions|origine|provenance|fabrication|fabriqué|herkomst|oorsprong|origen|fabricación|procedencia"
        "|origem|origine|provenienza|produzione|ursprung|oprindelse|oprindelses|opprinnelse|opprinnelses|tillverkning"
        "|tillverknings|fremstilling|alkuperä|alkuperämaa|valmistus|valmistusmaa|pochodzeni*|produkcji|původ*"
        "|происхожд*|производств*|made|fabricado|fabriqué en|hergestellt|producerad|wyprodukowan*|сделан*|изготовл*"
        "|country of manufacturer|",
    ),
    (
        "image",
        "asset|packshot|sfeerbeeld|miljöbild|image|images|img|imgs|picture|pictures|pic|pics|photo|photos|photography"
        "|silhouette|bild|bilder|abbildung|produktbild|foto|fotos|afbeelding|afbeeldingen|plaatje|imagen|imágenes"
        "|imagem|imagens|immagine|immagini|fotografia|bilde|billede|billeder|kuva|kuvat|kuvan|zdjęci*|obraz*|obrázek"
        "|obrázky|изображени*|фото*|картинк*|рисунок|swatch|thumbnail|lifestyle|vista|vistas|fotoğraf|foton|imagenes"
        "|fotografía|fotografías|fotografie|imgs url|grafik|zdjęć|pictureurl|bildet|bilden|lifestyleimage|",
    ),
    (
        "url",
        "url|urls|uri|link|links|href|src|address|adresse|lien|enlace|länk|linkki|osoite|ссылк*|path|pfad|file|filename|datei|dateiname|fichier|bestand|archivo|файл*",
    ),
    (
        "document",
        "pdf|document|documents|manual|instructions|instruction|sheet|datasheet|brochure|anleitung|montageanleitung|bedienungsanleitung|datenblatt|dokument|notice|fiche|handleiding|manuel|instrucciones|ficha|istruzioni|scheda|manual|vejledning|bruksanvisning|monteringsanvisning|ohje|instrukcj*|návod*|инструкц*|cad|dwg|3d|glb|usdz|model3d|energy|label",
    ),
    ("video", "video|videos|vidéo|youtube|vimeo|видео"),
    ("image_text", "image label|image text|bildtext|image title"),
    ("alt", "alt|alttext|caption|alternatif*"),
    (
        "hero",
        "main|primary|hero|featured|cover|default|haupt|hauptbild|principale|principal|hoofd|principal|portada"
        "|principale|huvud|hoved|pää|główn*|hlavní|главн*|основн*|primær|primär|primaire|primario|primaria|primair"
        "|first|erste|première|głównego|hovedbilde|hovedbillede|huvudbild",
    ),
    (
        "additional",
        "additional|other|further|secondary|extra|alternate|alternative|weitere|weiteres|zusatz|zusätzliche"
        "|supplémentaire|autres|overige|aanvullende|adicional|adicionales|otras|aggiuntiv*|altre|altri|ytterligare"
        "|øvrige|flere|dodatkow*|další|дополнительн*|другие|complementar|complementaria|complementario|complémentaire"
        "|ergänzende|kompletterande",
    ),
    (
        "tags",
        "tag|tags|keyword|keywords|schlagwort|schlagworte|stichwort|stichworte|suchbegriffe|suchwörter|mots|clés|mot"
        "|clé|trefwoorden|trefwoord|zoekwoorden|etiqueta|etiquetas|palabras|clave|parole|chiave|etichette|nyckelord"
        "|sökord|søgeord|nøkkelord|avainsanat|słowa|kluczowe|tagi|klíčová|ключев*|поисков*|теги|тег|метки|hashtag*"
        "|хештег*|хэштег*",
    ),
    (
        "style",
        "style|styles|stil|stilrichtung|wohnstil|estilo|stile|stijl|tyyli|styl|стил*|theme|look|styling|stijlen"
        "|stilart|estilos|stili|stilul",
    ),
    (
        "room",
        "room|rooms|raum|räume|wohnbereich|zimmer|pièce|kamer|ruimte|habitación|estancia|ambiente|ambienti|stanza|rum"
        "|rom|huone|pomieszczeni*|pokój|místnost|комнат*|помещени*|rooms use|wohnraum|raumtyp|usage room|kamers"
        "|ambiente uso|pièces|pokoje",
    ),
    (
        "features",
        "feature|features|bullet|bullets|bulletpoint|bulletpoints|highlight|highlights|usp|usps|selling point"
        "|eigenschaft|eigenschaften|merkmale|besonderheiten|besonderheit|stichpunkte|artikelfakten"
        "|produkteigenschaften|fakten|caractéristique|caractéristiques|points forts|avantages|kenmerken|eigenschappen"
        "|característica|características|caracteristicas|caratteristica|caratteristiche|egenskaper|egenskaber"
        "|fördelar|ominaisuudet|cech*|zalety|vlastnosti|особенност*|преимуществ*|характеристик*|properties|property"
        "|especificaciones|specificaties|specifications|specs|specification|puntos destacados|pontos"
        "|atributos destacados|selling points|key points|pluspunkte|vorteile|pluspunten|benefits|ventajas|vantaggi"
        "|fordele|fordeler|корот*",
    ),
    (
        "discontinued",
        "discontinued|discontinue|discon|obsolete|phased|phaseout|eol|closeout|auslauf|auslaufartikel|auslaufmodell"
        "|eingestellt|ausgelistet|arrêté|arrêt|supprimé|déréférencé|uitlopend|uitgefaseerd|vervallen|descatalogado"
        "|descontinuado|fuera catálogo|fuori produzione|dismesso|eliminato|utgående|utgått|udgående|udgået|utgår"
        "|poistuva|poistunut|wycofan*|ukončen*|снят*|disc|discont|abgekündigt|abverkauf|restposten|ausverkaufsartikel"
        "|fin de vie|fin de série|fuera de catálogo|wygaszan*|utfaset|utfases|udfases|poistettu|descontinuados"
        "|descatalogada|снята",
    ),
    (
        "replacement",
        "replacement|replaces|replaced|superseded|substitute|successor|nachfolger|nachfolgeartikel|ersatz|ersatzartikel|remplacement|remplaçant|vervanger|opvolger|sustituto|reemplazo|sostituto|sostituisce|ersättning|ersättningsartikel|erstatning|korvaava|zamiennik|náhrada|замен*",
    ),
    (
        "warranty",
        "warranty|guarantee|garantie|gewährleistung|garantía|garanzia|garantia|garanti|takuu|gwarancj*|záruk*"
        "|гаранти*|garanties|garantieren|garantias|гарантий*",
    ),
    (
        "care",
        "care|cleaning|maintenance|pflege|pflegehinweise|pflegehinweis|reinigung|entretien|onderhoud|mantenimiento|limpieza|manutenzione|pulizia|skötsel|skötselråd|vedligeholdelse|vedlikehold|hoito|pielęgnac*|čištění|уход*|washing",
    ),
    (
        "certificate",
        "certificate|certificates|certification|certifications|zertifikat|zertifikate|zertifizierung|certificat|certificering|certificado|certificato|certificazione|certifikat|sertifikaatti|certyfikat*|сертификат*|fsc|oeko|test|tested|norm|prüfzeichen",
    ),
    ("prop65", "prop65|proposition 65|prop 65"),
    ("sturdy", "sturdy|clothing storage"),
    ("search", "search|suche|recherche|zoek|búsqueda|ricerca"),
    ("tsca", "tsca|carb|formaldehyde"),
    (
        "note",
        "note|notes|comment|comments|remark|remarks|hinweis|hinweise|bemerkung|bemerkungen|anmerkung|kommentar"
        "|remarque|opmerking|opmerkingen|nota|notas|observaciones|note|osservazioni|anmärkning|bemærkning|huomautus"
        "|uwagi|poznámk*|примечани*|комментари*|disclaimer|observação|observações|observación|hinweistext|uwaga"
        "|disclaimers|warning|warnings|warnhinweis",
    ),
    (
        "unit",
        "unit|uom|einheit|maßeinheit|mengeneinheit|me|unité|eenheid|unidad|unità|unidade|enhet|enhed|yksikkö"
        "|jednostk*|jm|jednotk*|единиц*|измерени*|ед|measure unit|unit of measure|units of measure|unità di misura"
        "|unité de mesure|unidad de medida|unidade de medida|meeteenheid|måttenhet|måleenhed|måleenhet|mittayksikkö"
        "|jednostka miary|единица измерения|ед изм|verkaufseinheit|bestelleinheit|verkoopeenheid|enheten|uoms",
    ),
    ("set", "set|sets|bundle|kit|kits|komplett|komplet|conjunto|juego|ensemble|комплект*|zestaw*|sada|комплектаци*"),
    (
        "component",
        "component|components|part|parts|teil|teile|bestandteil|bestandteile|lieferumfang|composant|composants|onderdeel|onderdelen|componente|componentes|componenti|delar|dele|deler|osat|część|części|díly|компонент*|состав",
    ),
    (
        "created",
        "created|updated|modified|added|erstellt|geändert|angelegt|créé|modifié|aangemaakt|gewijzigd|creado"
        "|actualizado|modificado|creato|aggiornato|skapad|ändrad|oprettet|opprettet|luotu|utworzon*|zmian*|vytvořeno"
        "|создан*|обновлен*|изменен*|timestamp|last|valid|effective|gültig|launch|release|modification|modifications"
        "|stand|letzte änderung|dernière|ostatni*|последн*|aktualizac*|aktualisiert|opdateret|oppdatert|uppdaterad",
    ),
    (
        "review",
        "review|reviews|rating|ratings|stars|bewertung|bewertungen|avis|note moyenne|beoordeling|valoración|opiniones|recensione|recensioni|betyg|omdöme|anmeldelser|arvostelu|ocen*|opinie|hodnocení|отзыв*|рейтинг*",
    ),
    (
        "designer",
        "designer|designers|diseñador|ontwerper|designed|formgivare|suunnittelija|projektant|дизайнер*|author|artist",
    ),
    (
        "energy",
        "energieeffizienz|wattage|watt|watts|volt|voltage|spannung|leistung|lumen|bulb|bulbs|leuchtmittel|fassung|socket|lamp holder|ampoule|bombilla|lampadina|dimmable|led|kelvin|ip",
    ),
    (
        "persons",
        "persons|people|seats|seater|sitzplätze|sitzplatz|personen|places|place|plazas|posti|personer|henkilöä|osób|miejsc|osob|мест",
    ),
    ("age", "age|alter|âge|edad|età|gender|geschlecht|condition|zustand"),
    (
        "lang",
        "en|de|fr|nl|es|it|se|sv|dk|da|fi|pl|ru|us|uk|deutsch|english|englisch|ger|eng|fra|ita|esp|german|french|rus|pol|ukr|ua",
    ),
    (
        "location_use",
        "indoor|outdoor|interior exterior|inside outside|exterior|außen|extérieur|esterno|innenbereich|außenbereich"
        "|verwendungsbereich|einsatzbereich|usage|verwendung|anwendungsbereich|utilisation|gebruik|toepassing"
        "|zastosowanie|bereich",
    ),
    (
        "construction",
        "construction|weave|weaving|technique|knüpfart|webart|herstellungsart|fertigung|knoopwijze|tejeduría|lavorazione|vävteknik|vævning|tkania|způsob tkaní|плетени*|ткачеств*",
    ),
    (
        "rug",
        "rug|rugs|teppich|teppiche|tapis|vloerkleed|karpet|tapijt|alfombra|tappeto|matta|mattor|tæppe|teppe|matto|dywan*|koberec|ковер|ковр*",
    ),
    (
        "furniture",
        "chair|chairs|table|tables|sofa|sofas|couch|bed|beds|desk|cabinet|bench|stool|lamp|stuhl|stühle|tisch|tische|bett"
        "|betten|schrank|schreibtisch|polstermöbel|chaise|chaises|canapé|lit|bureau|armoire|stoel|stoelen|tafel|tafels|bank"
        "|kast|silla|sillas|mesa|mesas|sofá|cama|armario|sedia|sedie|tavolo|tavoli|divano|letto|armadio|stol|stolar|bord"
        "|soffa|säng|skåp|sofa|seng|skab|skap|tuoli|pöytä|sohva|sänky|kaappi|krzesł*|stół|stołu|sof*|łóżk*|szaf*|židl*|stůl"
        "|postel*|skříň|стул*|стол|стола|диван*|кроват*|шкаф*|кресл*|fauteuil|poltrona|sessel|hocker",
    ),
)
