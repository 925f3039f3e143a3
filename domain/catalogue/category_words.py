"""Vendors' names for the categories of the taxonomy in six languages.

Each line of NAMES has the slug of a category and the category's names.
Words whose meaning differs between the languages (`bank`, `bureau`, `chaise`, `commode`) are not listed on their own.
"""

NAMES = """\
seating | seating, sitzmobel, assises, asientos, sedute, zitmeubelen
sofas | sofa, couch, couches, settee, canape, divano, divani, sofas et canapes
sectionals | sectional, sectional sofa, sofa sectional, corner sofa, ecksofa, ecksofas, canape d angle, sofa esquinero, divano angolare, hoekbank, hoekbanken, wohnlandschaft, wohnlandschaften
loveseats | loveseat, love seat, zweisitzer
sleeper-sofas | sleeper sofa, sofa sleeper, sofa bed, sofabed, schlafsofa, canape lit, canape convertible, sofa cama, divano letto, divani letto, slaapbank, slaapbanken, convertible sofa
futons | futon
reclining-sofas | reclining sofa, sofa recliner, relaxsofa, canape relax
chairs | chair, stuhl, stuhle, silla, sedia, sedie, stoel, stoelen
accent-chairs | accent chair, arm chair, armchair, accent and arm chair, lounge chair, club chair, wingback chair, wing chair, sessel, fauteuil, sillon, sillones, poltrona, poltrone
recliners | recliner, recliner chair, reclining chair, relaxsessel, fauteuil relax, sillon reclinable, poltrona reclinabile
rocking-chairs | rocking chair, glider, glider chair, rocker, rocking chair and glider, schaukelstuhl, schaukelstuhle, mecedora, sedia a dondolo, schommelstoel
chaises | chaise longue, chaise lounge, chaise lounge chair, recamiere
slipper-chairs | slipper chair
folding-chairs | folding chair, klappstuhl, klappstuhle, chaise pliante, silla plegable, sedia pieghevole, klapstoel
bean-bags | bean bag, beanbag, bean bag chair, sitzsack, sitzsacke, zitzak
hanging-chairs | hanging chair, hangesessel, hangstoel
massage-chairs | massage chair, massagesessel
gaming-chairs | gaming chair, gamingstuhl, silla gaming, gaming stuhl
floor-chairs | floor chair
dining-chairs | dining chair, dining room chair, side chair, esszimmerstuhl, esszimmerstuhle, silla de comedor, eetkamerstoel, eetkamerstoelen
stools | bar stool, barstool, counter stool, bar and counter stool, barhocker, tabouret de bar, taburete de bar, sgabello da bar, barkruk, barkrukken, counter height stool
benches | bench, panca, panche, banqueta
dining-benches | dining bench, dining room bench
storage-benches | storage bench, entryway bench, storage and entryway bench
vanity-benches | vanity bench, vanity stool
ottomans | ottoman, pouf, footstool, pouffe, poef, hocker ottoman, puf, pufe
tables | table, tisch, tische, mesa, tavolo, tavoli
dining-tables | dining table, dining room table, kitchen table, esstisch, esstische, table a manger, mesa de comedor, tavolo da pranzo, eettafel, eettafels, esszimmertisch, esszimmertische
coffee-tables | coffee table, cocktail table, couchtisch, couchtische, table basse, tables basses, mesa de centro, tavolino da caffe, salontafel, salontafels
end-tables | end table, side table, end and side table, beistelltisch, beistelltische, table d appoint, tables d appoint, mesa auxiliar, mesas auxiliares, tavolino, tavolini, bijzettafel, bijzettafels
console-tables | console table, sofa table, console and sofa table, konsolentisch, konsolentische, table console, mesa consola
nightstands | nightstand, night stand, bedside table, nachttisch, nachttische, table de chevet, tables de chevet, mesita de noche, comodino, comodini, nachtkastje, nachtkastjes
bar-tables | bar table, pub table, bar and pub table, bartisch, bartische, table de bar, bartafel
folding-tables | folding table, klapptisch, klapptische, table pliante, mesa plegable, klaptafel
accent-tables | accent table
game-tables | game table, poker table, card table
bedroom | bedroom, schlafzimmer, chambre, dormitorio, camera da letto, slaapkamer
beds | bed, bed frame, bedframe, beds and frames, bett, betten, lit, cama, letto, letti, platform bed, canopy bed, upholstered bed, panel bed, boxspringbett, boxspringbetten
bunk-beds | bunk bed, loft bed, bunk and loft bed, etagenbett, etagenbetten, hochbett, hochbetten, lit superpose, litera, letto a castello, stapelbed, hoogslaper
daybeds | daybed, day bed, tagesbett
murphy-beds | murphy bed, wall bed, schrankbett, schrankbetten, lit escamotable
headboards | headboard, footboard, headboard and footboard, kopfteil, kopfteile, tete de lit, tetes de lit, cabecero, testiera, hoofdbord
mattresses | mattress, matratze, matratzen, matelas, colchon, colchones, materasso, materassi, matras, matrassen
mattress-foundations | mattress foundation, box spring, boxspring, mattress base, lattenrost, lattenroste, sommier
dressers | dresser, chest of drawers, dressers and chests, kommode, kommoden, comoda, cassettiera, ladekast, chest dresser, drawer chest
armoires | armoire, wardrobe, armoire and wardrobe, kleiderschrank, kleiderschranke, armario ropero, armadio, armadi, kledingkast, kledingkasten
vanities | bedroom vanity, makeup vanity, vanity table, schminktisch, schminktische, coiffeuse, tocador
bedroom-sets | bedroom set, schlafzimmer set
storage | storage, aufbewahrung, rangement, almacenaje, opbergmeubelen, storage furniture
bookcases | bookcase, bookshelf, bookshelves, shelf, shelves, shelving, bookcase and shelves, bucherregal, bucherregale, regal, regale, bibliotheque, etagere, estanteria, libreria, librerie, boekenkast, boekenkasten
wall-shelves | wall shelf, wall shelves, floating shelf, floating shelves, wandregal, wandregale, etagere murale, wandplank
cabinets | cabinet, schrank, schranke
buffets | buffet, sideboard, credenza, buffet and sideboard, anrichte, anrichten, aparador, dressoir, madia
china-cabinets | china cabinet, hutch, hutches, china cabinet and hutches, vitrine, vitrinen, vitrina, vetrina, vitrinekast, curio cabinet
tv-stands | tv stand, tv cabinet, media console, tv stand and media console, tv console, entertainment center, entertainment centre, tv unit, tv lowboard, tv mobel, meuble tv, mueble tv, mueble de tv, porta tv, tv meubel, tv kast
media-storage | media storage
wine-storage | wine cabinet, bar cabinet, wine rack, wine and bar cabinet, weinregal, weinregale, weinschrank, barschrank, casier a vin
storage-chests | storage chest, trunk, storage trunk, storage chest and trunk, truhe, truhen, coffre, baul
shoe-storage | shoe storage, shoe rack, shoe cabinet, schuhschrank, schuhschranke, schuhregal, zapatero, scarpiera, meuble a chaussures, schoenenkast
coat-racks | coat rack, hall tree, coat rack and hall tree, garderobe, garderoben, portemanteau, porte manteau, perchero, appendiabiti, kapstok
carts | kitchen cart, kitchen island, kitchen cart and island, bar cart, servierwagen, kucheninsel, serving cart
room-dividers | room divider, paravent, biombo, raumteiler, kamerscherm
dining-sets | dining set, dining room set, dining table set, dinette, essgruppe, essgruppen
living-room-sets | living room set, sofa set, wohnzimmer set
office | office, home office, buro, arbeitszimmer, oficina, ufficio, kantoor, office furniture
desks | desk, office desk, home office desk, writing desk, computer desk, standing desk, schreibtisch, schreibtische, escritorio, scrivania, scrivanie, burotisch, burotische
office-chairs | office chair, desk chair, task chair, executive chair, home office chair, burostuhl, burostuhle, chaise de bureau, silla de oficina, sedia da ufficio, bureaustoel, bureaustoelen
file-cabinets | file cabinet, filing cabinet, aktenschrank, aktenschranke, archivador
conference-tables | conference table, konferenztisch, konferenztische
drafting-tables | drafting table
workstations | workstation
office-sets | office set
outdoor | outdoor, outdoor furniture, garden furniture, gartenmobel, mobilier de jardin, muebles de jardin, mobili da giardino, tuinmeubelen
outdoor-seating | outdoor seating
outdoor-sofas | outdoor sofa, outdoor loveseat, gartensofa, loungesofa outdoor, canape de jardin
outdoor-sectionals | outdoor sectional, outdoor sectional sofa
outdoor-chairs | outdoor chair, adirondack chair, outdoor dining chair, outdoor lounge chair, gartenstuhl, gartenstuhle, chaise de jardin, silla de jardin, sedia da giardino, tuinstoel, tuinstoelen, garden chair
outdoor-benches | outdoor bench, garden bench, gartenbank, gartenbanke, banc de jardin, tuinbank
loungers | sun lounger, lounger, outdoor chaise lounge, sonnenliege, sonnenliegen, tumbona, lettino, ligbed
outdoor-tables | outdoor table, outdoor dining table, outdoor coffee table, outdoor side table, garden table, gartentisch, gartentische, table de jardin, mesa de jardin, tavolo da giardino, tuintafel, tuintafels
outdoor-sets | outdoor set, outdoor dining set, outdoor furniture set, gartenset
outdoor-ottomans | outdoor ottoman
outdoor-beds | outdoor bed, outdoor daybed
outdoor-storage | outdoor storage, deck box
outdoor-covers | furniture cover, outdoor furniture cover, outdoor cover, schutzhulle gartenmobel
umbrellas | umbrella, outdoor umbrella, sonnenschirm, sonnenschirme, parasol, sombrilla, ombrellone
planters | planter, outdoor planter, pflanzkubel, blumenkubel, jardiniere, macetero, fioriera, plantenbak
kids | kids, nursery, children, children and nursery, kinderzimmer, kindermobel
cribs | crib, toddler bed, crib and toddler bed, babybett, babybetten, lit bebe, cuna, culla
bassinets | bassinet, cradle, bassinet and cradle, stubenwagen
changing-tables | changing table, wickelkommode, wickelkommoden, wickeltisch, table a langer, cambiador
high-chairs | high chair, highchair, hochstuhl, hochstuhle, chaise haute, trona, kinderstoel
toy-storage | toy chest, toy box, toy storage, spielzeugkiste
kids-sets | nursery set, kids bedroom set
bathroom | bathroom, bath furniture, badezimmer, badmobel, salle de bain, bano, bagno, badkamer
bathroom-vanities | bathroom vanity, bath vanity, waschtisch, waschtische, waschtischunterschrank
bathroom-storage | bathroom storage, bathroom cabinet, bath storage, medicine cabinet, badschrank
rugs | rug, carpet, teppich, teppiche, tapis, alfombra, tappeto, tappeti, tapijt, vloerkleed, vloerkleden
area-rugs | area rug
runners | rug runner, runner rug, hallway runner rug, laufer teppich
outdoor-rugs | outdoor rug, outdoor teppich
rug-pads | rug pad, teppichunterlage
lighting | lighting, beleuchtung, leuchte, leuchten, eclairage, luminaire, iluminacion, illuminazione, verlichting
lamps | lamp, lampe, lampen, lampara, lampada, lampade
table-lamps | table lamp, desk lamp, tischlampe, tischlampen, tischleuchte, tischleuchten, lampe de table, lampara de mesa, lampada da tavolo, tafellamp, tafellampen, bedside lamp
floor-lamps | floor lamp, stehlampe, stehlampen, stehleuchte, stehleuchten, lampadaire, lampara de pie, lampada da terra, vloerlamp, vloerlampen
ceiling-lights | ceiling light, flush mount, ceiling lamp, deckenleuchte, deckenleuchten, deckenlampe, deckenlampen, plafonnier, plafon, plafoniera, plafondlamp, plafondlampen
chandeliers | chandelier, kronleuchter, lustre, lampadario
pendants | pendant, pendant light, pendant lamp, pendelleuchte, pendelleuchten, hangeleuchte, hangeleuchten, suspension luminaire, lampara colgante, hanglamp, hanglampen
wall-lights | wall light, wall sconce, sconce, wall lamp, wandleuchte, wandleuchten, wandlampe, wandlampen, applique murale, aplique, wandlamp
decor | decor, home decor, decoration, deko, dekoration, decoracion, decorazione, decoratie, home accent
mirrors | mirror, spiegel, miroir, espejo, specchio, specchi, spiegels, wall mirror, floor mirror
wall-art | wall art, wall decor, art print, wandbild, wandbilder, wanddeko, decoration murale, cuadro, quadro, wanddecoratie
pillows | throw pillow, accent pillow, decorative pillow, zierkissen, dekokissen, kissen, coussin, cojin, cojines, cuscino, cuscini, sierkussen
throws | throw blanket, throw, tagesdecke
vases | vase, vasen, jarron, jarrones, vaas, vazen
clocks | clock, wall clock, uhr, uhren, wanduhr, wanduhren, horloge, reloj, relojes, orologio, orologi, klok, klokken
sculptures | sculpture, statue, figurine, skulptur, skulpturen, escultura, scultura
parts | parts and accessories, spare part, replacement part, ersatzteil, ersatzteile, pieces detachees, repuesto, ricambio
"""

NEUTRAL_WORDS = frozenset(
    """
    and et und y e en of for the a de da di la le les des der die das del du fur mit with in d l al con
    home house living room dining kitchen entryway entry hallway hall furniture mobel meuble mueble mobili mobile meubel meubelen
    wohnen wohnzimmer esszimmer kuche flur salon salle sejour sala comedor cocina soggiorno cucina pranzo woonkamer eetkamer indoor
    interior product all shop category collection new sale best seller catalog catalogue item type department other
    modern classic contemporary traditional rustic vintage industrial farmhouse coastal scandinavian mid century transitional
    wood wooden oak walnut teak ash pine mango acacia metal steel iron brass glass marble stone rattan wicker leather velvet linen
    boucle fabric upholstered upholstery tufted swivel slipcovered massivholz holz leder samt stoff bois cuir madera cuero legno pelle hout leer
    small large round square rectangular oval extendable extending modular power manual king queen twin full double single california
    seater piece pc
    """.split()
)
"""Words that do not change the category that a name means: rooms, styles, materials, sizes. Lower case, without accents, singular."""
