"""Ordinary sentences by language: what a catalog in another language, or about other things, cannot
answer. Written for this purpose; how they are used, `answerability` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Of each language a few sentences of everyday life.
FOREIGN: Mapping[str, Sequence[str]] = {
    "German": (
        "Der Zug nach Hamburg hat heute leider zwanzig Minuten Verspätung",
        "Wir haben am Wochenende den Keller aufgeräumt",
        "günstige Ferienwohnung an der Ostsee",
    ),
    "French": (
        "Ma grand-mère prépare toujours la soupe avant de sortir",
        "Il faut réserver les billets au moins deux semaines à l'avance",
        "chaussures imperméables pour enfants",
    ),
    "Spanish": (
        "Mañana por la tarde vamos a pintar las paredes de la cocina",
        "El perro del vecino ladra cada vez que llueve",
        "cómo limpiar una sartén quemada",
    ),
    "Italian": (
        "Domani il negozio apre più tardi perché è festa",
        "Ho dimenticato le chiavi sul tavolo della cucina",
        "orario degli autobus per la stazione",
    ),
    "Portuguese": (
        "A minha irmã comprou uma bicicleta nova para ir ao trabalho",
        "Não consigo encontrar os meus óculos em lado nenhum",
        "receita de bolo de laranja sem ovos",
    ),
    "Dutch": (
        "Gisteren heeft het de hele dag geregend in Utrecht",
        "Kun je mij morgen even helpen met verhuizen",
        "tweedehands fiets voor kinderen",
    ),
    "Swedish": (
        "Vi åkte till stugan trots att vägen var full av snö",
        "Han glömde betala räkningen förra månaden",
    ),
    "Finnish": (
        "Lapset leikkivät pihalla koko pitkän iltapäivän",
        "Missä lähin apteekki sijaitsee",
    ),
    "Polish": (
        "Wczoraj wieczorem zgasło światło w całym budynku",
        "Szukam mieszkania blisko dworca kolejowego",
    ),
    "Czech": (
        "Na zahradě nám letos vyrostlo hodně rajčat",
        "Kolik stojí lístek do divadla",
    ),
    "Hungarian": (
        "Holnap reggel korán kell felkelnünk az utazás miatt",
        "olcsó szállás a tó mellett",
    ),
    "Turkish": (
        "Yarın sabah pazardan taze sebze alacağız",
        "Bu mahallede iyi bir berber var mı",
    ),
    "Indonesian": (
        "Kami menunggu bus hampir satu jam di bawah hujan",
        "cara mencuci sepatu putih",
    ),
    "Vietnamese": (
        "Hôm qua cả nhà tôi đi chợ mua cá tươi",
        "sửa máy giặt tại nhà",
    ),
    "Russian": (
        "Вчера мы долго гуляли вдоль реки и замёрзли",
        "Где можно починить старые часы",
        "недорогие зимние сапоги",
    ),
    "Greek": (
        "Το απόγευμα θα πάμε στην παραλία με τα παιδιά",
        "φθηνά εισιτήρια για το πλοίο",
    ),
    "Arabic": (
        "اشترى أخي سيارة مستعملة من السوق القديم",
        "مواعيد القطار إلى المدينة",
    ),
    "Hebrew": (
        "אתמול שכחנו לסגור את החלון לפני הגשם",
        "מתכון לעוגה פשוטה",
    ),
    "Hindi": (
        "कल सुबह हम बाज़ार से ताज़ी सब्ज़ियाँ लाएँगे",
        "घर के पास सस्ता होटल",
    ),
    "Thai": (
        "เมื่อวานฝนตกหนักจนน้ำท่วมถนนหน้าบ้าน",
        "ร้านซ่อมจักรยานใกล้ฉัน",
    ),
    "Chinese": (
        "昨天晚上我们在河边散步的时候下雨了",
        "附近哪里可以修理自行车",
        "儿童冬季羽绒服",
    ),
    "Japanese": (
        "きのうの夜は駅前の小さな店でうどんを食べました",
        "安い自転車の修理",
    ),
    "Korean": (
        "어제 저녁에 동생과 함께 시장에서 과일을 샀습니다",
        "겨울 장갑 추천",
    ),
}

# What people ask for in English, of subjects far apart from each other: a catalog is about few.
ENGLISH: Sequence[str] = (
    "how to remove limescale from a kettle",
    "which form declares rental income from a second property",
    "wheel bearing noise when turning left at low speed",
    "crochet pattern for baby booties",
    "is a verbal lease binding after the landlord sells the building",
    "replacement gasket for a pressure cooker lid",
    "spreadsheet formula to sum cells by colour",
    "why does my sourdough starter smell of acetone",
    "grout that does not stain on a shower floor",
    "the solubility of calcium carbonate in water saturated with carbon dioxide",
    "offside rule when the goalkeeper leaves the penalty area",
    "depreciation of leased equipment under the declining balance method",
    "printer prints blank pages after changing the cartridge",
    "dosage of ibuprofen for a child of twelve kilograms",
    "pruning an espaliered pear tree in late winter",
    "what is the yield stress of annealed copper wire at room temperature",
    "best opening reply to the queen's gambit for beginners",
    "how to bleed a radiator that stays cold at the top",
    "the effect of nitrogen fertilizer on the protein content of spring wheat",
    "compile error undefined reference to vtable",
    "visa requirements for a layover in Istanbul",
    "setting up a savings account for a grandchild",
    "sheet music for a clarinet quartet in B flat",
    "transverse vibration of a clamped rectangular plate with an elastic edge",
    "blackout curtains for a sloping roof window",
    "how many calories are in a bowl of lentil soup",
    "removing a stripped screw from a laptop hinge",
    "voting procedure of the upper chamber in a federal republic",
    "difference between a ferry slip and a pontoon berth",
    "declension of masculine nouns ending in a consonant",
    "diagnosis of foot rot in a flock of sheep",
    "an asymptotic expansion for the roots of a transcendental equation",
    "second hand tumble dryer with a warranty",
    "how to appeal a parking fine issued by a private company",
    "the heat of combustion of saturated hydrocarbons measured in a bomb calorimeter",
    "tuning the carburettor of a two stroke chainsaw",
    "hotel with a heated pool near the ski lift",
    "mixing ratio of sand and cement for pointing bricks",
    "settlement of a shallow foundation on saturated clay",
    "shampoo for a puppy with sensitive skin",
)
