"""What people call the columns of tables, in many languages, and which role each name tells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Whole names, in order of preference, as `folded` writes them.
COMMON_NAMES = {
    "id": """
        id itemid videoid movieid filmid productid articleid docid talkid bookid asin isbn sku
        productsku itemsku stockcode ean gtin upc productcode itemcode productnumber itemnumber
        partnumber articlenumber gameid songid trackid albumid recipeid courseid appid
        identifier uuid guid artikelnummer artikelnr artikelid produktnummer produktnr produktid
        referenz reference referenceproduit idproduit codeproduit codigo codigoproducto
        idproducto referencia codigoproduto idproduto codice codiceprodotto idprodotto idprodukt
        idproduktu kodproduktu indeks productnummer varenummer varenr artikul urunid urunkodu
        kod артикул код кодтовара idтовара номертовара 编号 商品id 商品编号 商品编码 产品编号
        货号 商品番号 商品コード 品番 상품번호 상품코드 상품id رقم الرقم رقمالمنتج رمزالمنتج
        معرف מזהה מקט מספר itemno itemnr productno
        articleno partno item video movie game handle""",
    "title": """
        title itemtitle videotitle movietitle productname producttitle itemname moviename
        gamename name headline originaltitle label displayname titel bezeichnung produktname
        artikelname artikelbezeichnung produktbezeichnung titre nom nomproduit libelle
        designation intitule titulo nombre nombreproducto nomeproduto nome titolo nomeprodotto
        tytul nazwa nazwaproduktu naam productnaam namn produktnamn navn produktnavn varenavn
        nazev nimi baslik isim urunadi название наименование заголовок имя 标题 名称 商品名称
        产品名称 商品名 品名 タイトル 名前 製品名 제목 이름 상품명 اسم الاسم اسمالمنتج العنوان שם
        שםהמוצר שםמוצר כותרת""",
    "user": """
        user userid username uid customer customerid reviewer reviewerid viewer member account
        visitor visitorid person email mail emailaddress customeremail useremail client clientid
        buyer buyerid shopper shopperid subscriber subscriberid patron listener player reader
        login memberid accountid personid sessionid kunde kunden kundennummer kundennr kundenid
        benutzer nutzer kaeufer kaufer besteller utilisateur acheteur courriel cliente usuario
        comprador correo utente acquirente klient uzytkownik nabywca klant klantnummer gebruiker
        koper kund kundnummer anvandare bruker bruger kundenavn zakaznik uzivatel asiakas
        kayttaja musteri kullanici клиент покупатель пользователь 用户 用户id 用户编号 客户
        客户id 客户编号 会员 会员id 买家 邮箱 ユーザー ユーザーid 顧客 顧客id 会員 会員id 회원
        회원id 고객 고객id 사용자 steamid العميل المستخدم الزبون לקוח משתמש""",
    "item": """
        item itemid video videoid movie movieid film filmid product productid article articleid
        doc docid book bookid talk talkid asin isbn stockcode sku productsku itemsku ean gtin
        upc game gameid song songid track trackid album albumid artist artistid recipe recipeid
        course courseid app appid productcode itemcode productnumber itemnumber articlenumber
        partnumber business businessid restaurant listing artikel artikelnummer artikelnr
        artikelid produkt produktid produktnummer ware produit idproduit codeproduit
        referenceproduit reference producto idproducto codigoproducto articulo produto idproduto
        codigoproduto artigo prodotto idprodotto codiceprodotto articolo idproduktu towar
        productnummer vare varenummer varenr tuote urun urunid товар артикул кодтовара idтовара
        продукт фильм 商品 商品id 商品编号 产品 产品id 货号 电影 商品番号 商品コード 品番 製品
        작품 상품 상품번호 상품코드 상품id id productname itemname producttitle itemtitle
        movietitle moviename gamename produktname artikelname 商品名 商品名称 상품명 المنتج
        رقمالمنتج رمزالمنتج מוצר מקט""",
    "rating": """
        rating score stars rate overall grade starrating userrating reviewrating ratingvalue
        reviewscore userscore bewertung sterne wertung evaluation etoiles puntuacion
        calificacion valoracion estrellas avaliacao nota valutazione voto punteggio ocena
        gwiazdki beoordeling waardering cijfer betyg vurdering hodnoceni arvosana puan оценка
        рейтинг 评分 评级 評価 評分 평점 별점""",
    "weight": """
        weight quantity qty minutes hours seconds watchtime playtime plays playcount playcounts
        listencount timesplayed timesbought count amount units pieces menge anzahl stueck stuck
        stueckzahl stuckzahl stk minuten stunden spielzeit quantite qte duree minutesvues heures
        cantidad unidades minutos horas quantidade qtd qtde quantita qta minuti ore ilosc liczba
        sztuk minuty godziny hoeveelheid aantal minuter timmar antal mengde mnozstvi pocet maara
        adet miktar количество колво минуты часы 数量 件数 次数 分钟 時間数 個数 回数 수량 횟수
        الكمية כמות""",
    "time": """
        timestamp time date datetime unixtime unixreviewtime watchedat viewedat createdat
        eventtime ts when orderdate purchasedate orderedat purchasedat datum zeit zeitpunkt
        zeitstempel bestelldatum kaufdatum bestellzeit horodatage datecommande dateachat heure
        fecha fechapedido fechacompra hora fechahora data datapedido datacompra datahora
        dataordine dataacquisto ora dataora datazamowienia datazakupu czas tijd tijdstip
        besteldatum tid tidpunkt tidspunkt dato ordredato paivamaara aika tarih zaman
        siparistarihi дата время датазаказа датапокупки 日期 时间 下单时间 购买时间 订单日期
        日付 日時 注文日 購入日 날짜 시간 주문일 구매일 التاريخ תאריך""",
}
# What search reads beside the title, in order.
TEXT_NAMES = """
    title name headline tags keywords genres genre categories category subjects description
    overview summary abstract plot body bodyhtml text content channel channeltitle author
    authors speaker artist artists director directors cast actors brand schlagworte stichworte
    kategorie kategorien beschreibung produktbeschreibung zusammenfassung inhalt autor motscles
    categorie resume contenu auteur etiquetas palabrasclave categoria categorias descripcion
    resumen contenido descricao resumo conteudo descrizione riassunto contenuto autore tagi
    kategoria opis streszczenie tresc trefwoorden categorieen omschrijving beschrijving
    samenvatting inhoud beskrivning beskrivelse popis aciklama etiketler теги категория
    категории жанр описание аннотация текст содержание автор 标签 类别 分类 描述 简介 内容 作者
    タグ カテゴリ カテゴリー ジャンル 説明 概要 著者 태그 카테고리 장르 설명 내용 저자
""".split()

# A name of several words plays a role where one of them is of the first kind and all others are of
# the second: customer_email, product_sku, ordered_at, minutes_watched.
NUMBERS = set(
    "id ids no nr num number nummer numer numero code kod codigo codice key sku ean uuid guid ref "
    "hash index".split()
)
TELLING = {
    "user": """
        user customer client buyer shopper reviewer viewer member account visitor person
        subscriber listener player reader kunde kunden benutzer nutzer kaufer utilisateur
        cliente usuario utente klient uzytkownik klant gebruiker kund bruker bruger musteri
        клиент покупатель пользователь""",
    "item": """
        item product article sku asin isbn ean movie film video book song track album game app
        show series episode podcast recipe talk course listing artikel produkt produit producto
        produto prodotto articulo articolo artigo towar vare urun товар""",
    "title": "title name titel titre titolo titulo nome nombre nazwa bezeichnung",
    "rating": "rating stars score bewertung",
    "weight": """
        quantity qty minutes hours plays units pieces menge anzahl playtime watchtime cantidad
        quantidade quantite ilosc aantal antal""",
    "time": "date time datetime timestamp at on datum zeit fecha data dato tijd tid дата",
}
DEEDS = set(
    "order ordered purchase purchased bought buy watch watched view viewed play played listen "
    "listened read rated rating review reviewed create created event transaction sale sold "
    "interaction activity visit visited click clicked submitted placed paid payment invoice last "
    "bestell kauf commande achat pedido compra ordine acquisto заказа покупки".split()
)
THINGS, PEOPLE = TELLING["item"].split(), TELLING["user"].split()
BESIDE = {
    "user": NUMBERS | {"email", "mail", "e", "address", "name", "login", "unique", "external"},
    "item": NUMBERS
    | {"external", "unique", "parent", "ordered", "purchased", "title", "name", "line", "lineitem"}
    | {"variant"},
    "title": {*THINGS, "original", "full", "display", "line", "lineitem"},
    "rating": {*THINGS, *PEOPLE, "review", "star", "value", "overall"},
    "weight": DEEDS
    | {"total", "sum", "item", "product", "line", "lineitem", "of", "in", "forever", "count"},
    "time": DEEDS
    | {"start", "end", "of", "in", "utc", "local", "unix", "epoch", "date", "time", "added", "and"},
}
LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ı": "i"})
# Of the words of a text's name the last is one of these: Book-Author, long_description.
TEXT_ENDS = set(
    "tags keywords genres genre description summary overview author authors artist beschreibung "
    "descripcion descricao descrizione opis omschrijving".split()
)


def words_of(name: str) -> list[str]:
    """The words of a name without accents and case.

    >>> words_of("customerEmail"), words_of("Qualität (max.)"), words_of("商品ID")
    (['customer', 'email'], ['qualitat', 'max'], ['商品id'])
    """
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.translate(LETTERS))
    plain = unicodedata.normalize("NFKD", split)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.findall(r"[^\W_]+", plain.casefold())


def folded(name: str) -> str:
    """A name without accents, case and all that is between its words.

    >>> folded("Artikel-Nr.")
    'artikelnr'
    """
    return "".join(words_of(name))


def named(role: str, names: Sequence[str]) -> list[str]:
    """The columns whose names tell that they play `role`, the surest first.

    >>> named("user", ["price", "customer_email", "User ID"])
    ['User ID', 'customer_email']
    """
    common = {name: place for place, name in enumerate(map(folded, COMMON_NAMES[role].split()))}
    whole = {name: common[folded(name)] for name in names if folded(name) in common}
    found = sorted(whole, key=lambda name: whole[name])
    if role in TELLING:
        found += [name for name in names if name not in whole and _tells(role, words_of(name))]
    return found


def _tells(role: str, words: Sequence[str]) -> bool:
    telling = TELLING[role].split()
    return (
        len(words) > 1
        and any(word in telling for word in words)
        and all(word in telling or word in BESIDE[role] for word in words)
    )


def named_as_text(names: Sequence[str]) -> list[str]:
    """The columns whose names tell that search reads them, those it weighs most first.

    >>> named_as_text(["price", "long_description", "Tags"])
    ['Tags', 'long_description']
    """
    places = {name: place for place, name in enumerate(TEXT_NAMES)}
    whole = {name: places[folded(name)] for name in names if folded(name) in places}
    ends = [name for name in names if name not in whole and {*words_of(name)[-1:]} & TEXT_ENDS]
    return sorted(whole, key=lambda name: whole[name]) + ends
