"""The furniture taxonomy of the service, with the equivalent Google product category if there is one.

Each line has an indentation of two spaces per level, a permanent slug, a name and, optionally, Google's category number.
"""

TREE = """\
seating | Seating |
  sofas | Sofas | 460
    sectionals | Sectionals | 500064
    loveseats | Loveseats |
    sleeper-sofas | Sleeper sofas |
    futons | Futons | 450
    reclining-sofas | Reclining sofas |
  chairs | Chairs | 443
    accent-chairs | Accent and arm chairs | 6499
    recliners | Recliners |
    rocking-chairs | Rocking chairs and gliders | 2002
    chaises | Chaises | 456
    slipper-chairs | Slipper chairs | 6859
    folding-chairs | Folding chairs | 3358
    bean-bags | Bean bags | 438
    hanging-chairs | Hanging chairs | 7197
    massage-chairs | Massage chairs | 2919
    gaming-chairs | Gaming chairs | 6800
    floor-chairs | Floor chairs | 500051
  dining-chairs | Dining chairs | 5886
  stools | Bar and counter stools | 1463
  benches | Benches | 441
    dining-benches | Dining benches | 6850
    storage-benches | Storage and entryway benches | 6851
    vanity-benches | Vanity benches | 4241
  ottomans | Ottomans and poufs | 458
tables | Tables | 6392
  dining-tables | Dining tables | 4355
  coffee-tables | Coffee tables | 1395
  end-tables | End and side tables | 1549
  console-tables | Console and sofa tables | 1602
  nightstands | Nightstands | 462
  bar-tables | Bar and pub tables |
  folding-tables | Folding tables |
  accent-tables | Accent tables | 6369
  game-tables | Game tables |
bedroom | Bedroom | 6433
  beds | Beds and frames | 505764
    bunk-beds | Bunk and loft beds |
    daybeds | Daybeds |
    murphy-beds | Wall beds |
  headboards | Headboards and footboards | 451
  mattresses | Mattresses | 2696
  mattress-foundations | Mattress foundations | 2720
  dressers | Dressers and chests | 4195
  armoires | Armoires and wardrobes | 4063
  vanities | Bedroom vanities | 6360
  bedroom-sets | Bedroom sets | 6346
storage | Storage | 6356
  bookcases | Bookcases and shelves | 465
  wall-shelves | Wall shelves | 6372
  cabinets | Cabinets | 5938
  buffets | Buffets and sideboards | 447
  china-cabinets | China cabinets and hutches | 448
  tv-stands | TV stands and media consoles | 457
  media-storage | Media storage | 6358
  wine-storage | Wine and bar cabinets | 6357
  storage-chests | Storage chests and trunks | 4205
  shoe-storage | Shoe storage |
  coat-racks | Coat racks and hall trees |
  carts | Kitchen carts and islands | 442
  room-dividers | Room dividers | 4163
dining-sets | Dining sets | 6347
living-room-sets | Living room sets | 6348
office | Office | 6362
  desks | Desks | 4191
  office-chairs | Office chairs | 2045
  file-cabinets | File cabinets | 463
  conference-tables | Conference tables | 4317
  drafting-tables | Drafting tables | 2242
  workstations | Workstations | 6908
  office-sets | Office sets | 500061
outdoor | Outdoor | 4299
  outdoor-seating | Outdoor seating | 6368
    outdoor-sofas | Outdoor sofas | 4513
    outdoor-sectionals | Outdoor sectionals | 500111
    outdoor-chairs | Outdoor chairs | 6828
    outdoor-benches | Outdoor benches | 5044
    loungers | Sun loungers | 4105
  outdoor-tables | Outdoor tables | 2684
  outdoor-sets | Outdoor sets | 6367
  outdoor-ottomans | Outdoor ottomans | 6822
  outdoor-beds | Outdoor beds | 6892
  outdoor-storage | Outdoor storage | 7310
  outdoor-covers | Furniture covers | 6964
  umbrellas | Umbrellas |
  planters | Planters |
kids | Children and nursery | 554
  cribs | Cribs and toddler beds | 6394
  bassinets | Bassinets and cradles | 6393
  changing-tables | Changing tables | 558
  high-chairs | High chairs | 559
  toy-storage | Toy chests | 4268
  kids-sets | Nursery sets | 6349
bathroom | Bathroom |
  bathroom-vanities | Bathroom vanities | 2081
  bathroom-storage | Bathroom storage |
rugs | Rugs | 598
  area-rugs | Area rugs |
  runners | Runners |
  outdoor-rugs | Outdoor rugs |
  rug-pads | Rug pads |
lighting | Lighting | 594
  lamps | Lamps | 4636
    table-lamps | Table lamps |
    floor-lamps | Floor lamps |
  ceiling-lights | Ceiling lights |
    chandeliers | Chandeliers | 2249
    pendants | Pendants |
  wall-lights | Wall lights | 6073
decor | Decor | 696
  mirrors | Mirrors | 595
  wall-art | Wall art | 500044
  pillows | Throw pillows | 4454
  throws | Throws |
  vases | Vases | 602
  clocks | Clocks | 3890
  sculptures | Sculptures |
parts | Parts and accessories |
"""
