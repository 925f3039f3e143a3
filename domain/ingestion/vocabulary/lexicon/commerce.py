"""Words for prices, stock, delivery and packing."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, str], ...]] = (
    (
        "price",
        "vk|vkp|price|prices|pricing|preis|preise|prix|tarif|tarifs|tarif|prijs|prijzen|precio|precios|preço|preços|prezzo"
        "|prezzi|listino|pris|priser|hinta|hinnat|cena|ceny|cen|цен*|стоимост*|prs",
    ),
    (
        "cost",
        "cost|costs|einkauf|einkaufs|einkaufspreis*|ek|ekp|einstand|einstandspreis|achat|pa|inkoop|inkoops|kostprijs"
        "|coste|costo|custo|compra|acquisto|inköp|inköps|indkøb|indkøbs|innkjøp|innkjøps|kostpris|osto|ostohinta"
        "|zakup*|nákup*|закуп*|себестоимост*|buying|buy|purchase|purchasing|landed|invoice price|exw|einkaufspreise"
        "|costi|compras|prix achat|zakupow*|anskaffelse|anskaffelses|prezzo fornitore",
    ),
    (
        "trade",
        "wholesale|whls|whsl|whs|wsl|wsp|dealer|distributor|trade|reseller|b2b|großhandel|händler|haendler|grossiste"
        "|revendeur|pro|groothandel|dealerprijs|mayorista|mayoreo|distribuidor|atacado|ingrosso|rivenditore|grossist"
        "|engros|återförsäljare|forhandler|tukku|hurt*|velkoobchod*|опт*|дилер*|партнер*|revenda|revendedor|jobber"
        "|fachhandel|fachhändler|handlarpris|detaillant|detallista",
    ),
    ("free", "free|frei|freier|vrije|vrij|libre|libero|fritt|fri|ledig|свободн*"),
    ("sold_out", "out of stock|sold out|ausverkauft|épuisé|uitverkocht|agotado|esaurito"),
    (
        "net",
        "нетто|net|netto|nett|neto|líquido|líquida|liquido|liquida|чист*",
    ),
    (
        "msrp",
        "msrp|mrp|rrp|srp|uvp|pvpr|ppc|pvc|pvp|adviesprijs|consumentenadviesprijs|vejl|veil|rekpris|cirkapris"
        "|ohjehinta|ovh|рц|ррц|мрц|preisempf*|moc|rsp|pvpc|prix conseillé|ppt|апц",
    ),
    (
        "advised",
        "recommended|suggested|sugg|unverbindlich*|unverb|empfohlen*|conseillé|recommandé|advies|recomendado|sugerido"
        "|consigliato|suggerito|vejledende|veiledende|suositus|rekommenderat|rek|rekomendowan*|sugerowan*|katalogow*"
        "|doporučen*|рекоменд*|empf|empfohlener",
    ),
    ("map", "map|imap|umap|emap|mapp|miap|minimum advertised"),
    (
        "list",
        "list|liste|listen|listenpreis|catalog|catalogue|katalog|lijst|lijstprijs|lista|listino|listpris|listpriset|cennik*|прайс*|каталож*|public|publiek",
    ),
    (
        "retail",
        "retail|selling|sell|sales|consumer|customer|webshop|web|website|online|store|shop|regular|current|verkauf"
        "|verkaufs|endkunden|kunden|laden|brutto|bruttopreis|abhol|mitnahme|werbe|auszeichnungs|vente|public|boutique"
        "|verkoop|winkel|consumenten|venta|publico|público|tienda|venda|vendita|pubblico|dettaglio|försäljning"
        "|försäljnings|butik|butiks|salg|salgs|udsalg|udsalgs|utsalg|utsalgs|utpris|kunde|myynti|vähittäis|sprzedaż*"
        "|detal*|prodej*|maloobchod*|розничн*|продаж*|розниц*|rozn*|final|finale|normal|normale|normaal|vanlig"
        "|standaardprijs|consumidor|loja|particulier|sklep*|display|checkout",
    ),
    (
        "sale",
        "sale|special|promo|promotion|promotional|discounted|clearance|offer|aktion|aktions|angebot|angebots|sonder"
        "|sonderpreis|reduziert|soldes|promotionnel|réduit|actie|aanbieding|aanbiedings|oferta|rebajado|rebajas"
        "|promoción|promocional|offerta|scontato|promozione|saldo|kampanj|kampanje|kampagne|rea|reapris|tilbud"
        "|tilbuds|nedsatt|tarjous|alennus|promoc*|wyprzedaż*|akce|akční|акци*|распродаж*|скидк*|со скидкой|descontado"
        "|saldi|soldé|soldée|barato|kampanjpris|remisé|remisée|afgeprijsd|nedsat|akcyjn*|promocyjn*|льгот*",
    ),
    (
        "old",
        "pseudo|old|was|original|compare|before|previous|former|strikethrough|strike through|strike|msrp was|crossed"
        "|streich|statt|alt|alter|ursprungs|ursprünglich|ancien|avant|barré|origine|oude|oorspronkelijk|doorgestreept"
        "|anterior|antes|tachado|antigo|precedente|originale|barrato|ordinarie|ordinær|ord|tidligare|före|før|förpris"
        "|førpris|normaali|alkuperäinen|star*|pierwotn*|przekreślon*|původní|стар*|до скидки|зачеркнут*|regulier"
        "|reguliere|voorheen|vorige|vorheriger|bisher|bisheriger|ex prezzo|wcześniejsz*|poprzedni*|прежн*|предыдущ*",
    ),
    (
        "tax",
        "tax|vat|mwst|ust|steuer|steuersatz|tva|ttc|ht|btw|iva|moms|mva|alv|vat|dph|ндс|gst|sis|sisältää|ekskl|eks"
        "|escl|bez dph|s dph|без ндс|с ндс|excl|incl|inkl|exkl|excluding|including|hors|ohne|zzgl|taxes|taxe|taxable"
        "|ivato|ivata|ttc|esclusa|inclusa|incluido|heffingen|taxclass|iva incluido|mehrwertsteuer|umsatzsteuer"
        "|omzetbelasting|ivaincl|pdv|kdv",
    ),
    ("rate", "rate|rates|satz|steuersatz|sats|stawka|taux|aliquota|тариф*"),
    (
        "discount",
        "voucher|gutschein|coupon|discount|discounts|rabatt|rabatte|remise|korting|descuento|dto|desconto|sconto"
        "|sconti|rabat|alennusprosentti|zniżk*|sleva|скидк*|margin|marge|marża|markup|aufschlag|marżę|multiplier"
        "|percent|percentage|prozent|pourcentage|rebate|ristorno|kickback|bonus|rabatten|rabattsatz|descuentos|skonto"
        "|rabat %|savings|saving|besparing|ersparnis",
    ),
    (
        "reduced",
        "discount price|discounted price|reduced price|rabattpreis|aktionspreis|prix remisé|prix réduit|precio de descuento|precio con descuento"
        "|precio rebajado|prezzo scontato|prezzo ridotto|prijs met korting|kortingsprijs|nedsatt pris|nedsat pris|cena promocyjna"
        "|цена со скидкой|preço com desconto|alennettu hinta",
    ),
    ("count", "number of|no of|nr of|num of|n colli|nr colli|n bultos|no bultos|num bultos|n colis|nb colis|nr of"),
    (
        "within",
        "in|w|v|в|dans|inside of|i",
    ),
    (
        "surcharge",
        "surcharge|fee|fees|zuschlag|gebühr|supplément|toeslag|recargo|supplemento|tillägg|tillæg|dopłat*|ecotax|eco"
        "|écotaxe|éco|ecoparticipation|participation|contribution|deposit|pfand|weee|raee|d3e|deee|levy|duty|duties"
        "|drop ship fee|dropship fee|handling fee|frachtzuschlag|mautzuschlag|treibstoffzuschlag|koszt dostawy|gastos",
    ),
    (
        "currency",
        "currency|währung|waehrung|devise|monnaie|valuta|munt|moneda|divisa|moeda|valute|valutakod|valuutta|walut*"
        "|měna|валют*|currencycode|waluty|valutakode|valutaen",
    ),
    (
        "stock",
        "stock|stocks|inventory|onhand|on hand|qoh|soh|atp|lager|lagerbestand|lagerbestände|bestand|bestände|vorrat"
        "|inventaire|dispo|voorraad|voorraden|existencia|existencias|inventario|estoque|giacenza|giacenze|magazzino"
        "|scorte|disponibilità|lagersaldo|saldo|lagerstatus|lagerantal|beholdning|lagerbeholdning|varasto"
        "|varastosaldo|stan magazynowy|stany magazynowe|stan|stany|sklad|skladem|zásob*|остаток|остатки|остатк*"
        "|на складе|запас*|balance|lagermenge|lagerstand|wms|stocklevel|voorraadstatus|stockage|almacenaje|на остатке"
        "|stan mag|stany mag|stock qty on hand",
    ),
    (
        "quantity",
        "quantity|quantities|qty|qnty|qté|units|pcs|pieces|menge|anzahl|stück|stückzahl|stk|quantité|quantite|nombre"
        "|aantal|hoeveelheid|stuks|cantidad|cant|unidades|uds|quantidade|qtd|quantità|qta|pezzi|pz|antal|mängd|mengde"
        "|antall|määrä|kpl|ilość|ilosc|szt|sztuk|sztuki|liczba|množství|ks|počet|количеств*|кол|колво|шт|штук|q ta"
        "|qtt|qte|nbre|nb|anz|aant|qntd|qtde|mängden|кол во|cantidades|quantitativo",
    ),
    (
        "availability",
        "availability|auf lager|en stock|in stock|op voorraad|på lager|i lager|na stanie|в наличии|available|avail"
        "|verfügbarkeit|verfügbar|lieferbarkeit|lieferbar|disponibilité|disponible|beschikbaarheid|beschikbaar"
        "|leverbaar|leverbaarheid|disponibilidad|disponibilidade|disponível|disponibile|tillgänglighet|tillgänglig"
        "|disponibel|disponibelt|disponibilt|tilgængelighed|tilgjengelighet|saatavuus|dostępność|dostepnosc|dostępny"
        "|dostupnost|доступност*|наличи*|disponibles|disponibili|verfügbare|beschikbare|disponíveis|dostępn*"
        "|lieferstatus|leveransstatus|stockstatus|stock status|на складах",
    ),
    (
        "status",
        "status|enabled|active|actif|lifecycle|aktiv|statut|estado|stato|attivo|tila|статус*|состояни*|stav|publish"
        "|published|activo|actief|aktywn*|situação|situación|situation",
    ),
    (
        "reserved",
        "suivi|reserved|allocated|committed|sold|backordered|backorders|reserviert|réservé|gereserveerd|reservado"
        "|riservato|impegnato|reserverad|reserveret|varattu|rezerw*|резерв*|verkauft|vendu|vendus|verkocht|vendidos"
        "|venduti|sålda|solgt|sprzedan*|продано|safety|reorder|threshold|track|tracked|tracking|tracker|low|bas|alert"
        "|alerte|policy|manage|managed|niveau|minimum stock|mindestbestand|meldebestand|damaged|niedrig|low stock"
        "|overselling|backorder|na zamówienie|hold|holds|on hold|blocked|gesperrt|geblockt|bassa|basso|bajo|baja|låg"
        "|lavt|nisk*|baixo|baixa|onder minimum",
    ),
    (
        "warehouse",
        "warehouse|warehouses|whse|location|depot|lagerort|lagerplatz|standort|entrepôt|magasin|magazijn|locatie|almacén"
        "|almacen|bodega|ubicación|armazém|deposito|ubicazione|lagerplats|lagersted|varastopaikka|magazyn*|lokalizacj*|склад*",
    ),
    (
        "incoming",
        "incoming|inbound|on water|afloat|приход*|saapumis|on order|onorder|on po|transit|arriving|arrival|arrivals"
        "|expected|zulauf|unterwegs|bestellt|wareneingang|arrivage|arrivages|attendu|réassort|réapprovisionnement"
        "|commande fournisseur|inkomend|onderweg|verwacht|besteld|bestelling|forventet|förväntad|förväntat|entrante"
        "|llegada|tránsito|previsto|chegada|arrivo|arrivi|in arrivo|ordinato|inkommande|ankommande|i order|indgående"
        "|på vej|bestilt|underveis|innkommende|saapuva|tulossa|w drodze|dostaw*|příjezd|naskladnění|поступлен*|в пути"
        "|ожида*|restock|replenish*|next|транзит*|trânsito|på väg|på vei|på vej hjem|próxima entrada|inleverans"
        "|inleveranser|purch order|purchase order|purchase orders|w tranzycie|ordered|en camino|por llegar|a caminho"
        "|en route|en cours|en commande|due|nächste|nächster|nächstes|nächsten|nästa|næste|neste|prochain|prochaine"
        "|próxima|próximo|prossima|prossimo|volgende|następn*|najbliższ*|ближайш*|следующ*|inbound shipment|verwachte"
        "|erwartet|erwarteter|nachschub|wiederverfügbar|backinstock|back in stock|poordered|on purchase|zamówion*"
        "|заказан*",
    ),
    ("arrival", "arrival|arrivals|ankunft|arrivage|arrivages|llegada|chegada|arrivo|arrivi|поступлен*"),
    (
        "date",
        "date|dates|datum|dato|fecha|data|dag|päivä|päivämäärä|termin|дат*|eta|liefertermin|leverdatum|leverdato"
        "|leveransdatum|wann|when|giorno|día|jour|dzień|день|däte",
    ),
    ("eta", "eta"),
    (
        "time",
        "w ciągu|gg|time|times|latency|zeit|zeiten|délai|délais|delai|tijd|tijden|termijn|frist|tiempo|plazo|tempo"
        "|tempi|prazo|tid|aika|czas|doba|срок*|врем*|days|tage|werktage|jours|dagen|werkdagen|días|giorni|dagar|dage"
        "|dager|päivää|dni|dnů|дней|weeks|wochen|semaines|weken|semanas|settimane|veckor|uger|hours|stunden|dias|dia"
        "|giorno",
    ),
    (
        "delivery",
        "beschaffung|delivery|dlv|deliver|shipping|ship|ships|shipment|dispatch|handling|processing|preparation"
        "|préparation|preparación|preparazione|przygotowan*|bearbeitung|lead|liefer|lieferung|lieferzeit|lieferzeiten"
        "|versand|livraison|expédition|envoi|levering|lever|levertijd|verzending|bezorging|entrega|envío|despacho"
        "|consegna|spedizione|evasione|leverans|leveranstid|frakt|levering|leverings|forsendelse|toimitus|wysyłk*"
        "|dostaw*|realizacji|dodání|doručení|dodací|доставк*|отгрузк*|поставк*|freight|fracht|transport|fulfillment"
        "|despatch|aussendung|auslieferung|bezorg|aflever|toimitusaika|ekspedycj*|uitlever|leverancier levering"
        "|preparação|preparacion|voorbereiding|klargøring",
    ),
    (
        "leadtime",
        "délai|délais|lead time|leadtime|lieferzeit|lieferzeiten|levertijd|leveringstid|leveranstid|toimitusaika"
        "|lev tid|leveringstijd|lieferfrist|preparation time|dias para preparação",
    ),
    (
        "package",
        "rolled|gerollt|roulé|package|packages|packaging|packed|packing|pack|parcel|parcels|carton|cartons|ctn|box"
        "|boxes|boxed|shipped|pkg|verpackung|verpackungs|verpackt|paket|pakete|packstück|packstücke|karton|kartons"
        "|kolli|collo|versandmaß|colis|emballage|emballé|carton|verpakking|doos|dozen|pakket|pakketten|colli|paquete"
        "|paquetes|embalaje|caja|cajas|bulto|bultos|embalagem|caixa|volumes|imballo|imballaggio|confezione|scatola"
        "|colli|pacco|pacchi|förpackning|förpackningar|kartong|kollin|emballage|pakke|pakker|kasse|kasser|emballasje"
        "|pakkaus|paketti|kolli|opakowan*|paczk*|karton*|balení|krabic*|упаковк*|упаковок|коробк*|коробок|мест|ctns"
        "|cx|paczek|pakunek|pudełk*|pacote|pacotes|encomenda|embalado|emb|packet|packets|doosje|krt|packung|packungen"
        "|gebinde|empaque|empaques|embalajes|embalagens|imballi|scatole|förp|pakning|pakninger|kollis|packaged|envase"
        "|envases|bundles boxed|kartonu|kartonie|kartonów|pakiet*|грузомест*|упак",
    ),
    (
        "gross",
        "gross|brutto|brut|bruto|lordo|брутто|logistic|logistics|logistik|shipping|versand|freight|transport|brut"
        "|pakketgewicht|bruta|bruttowaga|lorda|grw|grwt",
    ),
    (
        "master",
        "master|outer|pallet|pallets|palette|paletten|container|containers|cont|umkarton|20ft|40ft|40hq|20gp|40gp|hq"
        "|hc|truckload|palet|palett|паллет*|pallet's|pal|pallette|export|ve1|ve2|überkarton|masterkarton|overdoos"
        "|omdoos|exportkarton|паллета|case|cases",
    ),
    (
        "bound",
        "min|mini|minimum|max|maxi|maximum|maximal|minimal|maximale|minimale|massimo|minimo|mínimo|máximo|макс*|мин|минимал*",
    ),
    (
        "moq",
        "moq|minimum order|min order|mindestbestellmenge|mindestabnahme|abnahme|quantité minimum|bestelhoeveelheid"
        "|multiple|multiples|increment|step|incremental|bestelleenheid|min bestellmenge|min bestell menge"
        "|mindest bestell menge|minbestellmenge|minimale afname|minste ordre|minimalne zamówienie",
    ),
    ("casepack", "case pack|casepack|innerpack|inner pack"),
    (
        "returns",
        "return|returns|rückgabe|retoure|retour|retours|devolución|reso|retur|palautus|zwrot*|возврат*|retouren"
        "|rückgaben|resi|returned|zurückgegeben|retourné|devuelto",
    ),
    ("per", "per|je|par|pro|за"),
    (
        "assembly",
        "assembly|assemble|montage|aufbau|zusammenbau|montaż*|montáž*|assemblage|monter|monteren|montaje|ensamblaje"
        "|ensamblado|armado|montagem|assemblaggio|montaggio|montering|samling|samles|kokoaminen|asennus|сборк*"
        "|knocked|rta|kd|assy|asm|montieren|monteras|monteres|montare|assemblare|armar|ensamblar|zmontowania|montażu"
        "|selbstmontage|zelfmontage|aufgebaut werden|собирать",
    ),
    (
        "assembled",
        "assembled|preassembled|monté|montiert|vormontiert|zerlegt|montato|montado|monterad|omonterad|samlet|usamlet|gemonteerd|smontato|zmontowan*|собран*|в сборе",
    ),
    (
        "required",
        "required|needed|necessary|erforderlich|nötig|notwendig|requis|requise|nécessaire|vereist|nodig|benodigd"
        "|requerido|necesario|requiere|necessaria|richiesto|richiesta|krävs|påkrævet|nødvendig|tarvitaan|wymagan*"
        "|nutn*|требует*|необходим*|req|reqd|rqd|benötigt|nécessite|richiede|vyžaduje|vereiste|requerida|notwendige",
    ),
    ("white_glove", "white glove|whiteglove"),
    ("freight_class", "freight class|ltl class|nmfc class"),
    (
        "stackable",
        "stackable|stapelbar|empilable|stapelbaar|apilable|impilabile|foldable|klappbar|pliable|adjustable|verstellbar|extendable|ausziehbar",
    ),
)
