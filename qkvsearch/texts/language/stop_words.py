"""Words that carry nothing, language by language: articles, pronouns, prepositions, auxiliaries.

Function words alone. Longer lists that are common elsewhere name "time", "work", "life", numbers
and "good" as well, which people ask for; that such words are frequent, their idf says.
"""

from __future__ import annotations

from collections.abc import Mapping

# By the names that Snowball has for the languages.
_WRITTEN: Mapping[str, str] = {
    "english": """
        a about above after again against all am an and any are aren't as at be because been before
        being below between both but by can can't cannot could couldn't did didn't do does doesn't
        doing don't down during each few for from further had hadn't has hasn't have haven't having
        he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm
        i've if in into is isn't it it's its itself let's me more most mustn't my myself no nor not
        of off on once only or other ought our ours ourselves out over own same she she'd she'll
        she's should shouldn't so some such than that that's the their theirs them themselves then
        there there's these they they'd they'll they're they've this those through to too under
        until up very was wasn't we we'd we'll we're we've were weren't what what's when when's
        where where's which while who who's whom why why's will with won't would wouldn't you you'd
        you'll you're you've your yours yourself yourselves
    """,
    "german": """
        aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da damit
        dann das dass dein deine deinem deinen deiner deines dem den denn der deren des dessen dich
        die dies diese diesem diesen dieser dieses dir doch du durch ein eine einem einen einer
        eines er es etwas euch euer eure eurem euren für gegen habe haben hat hatte hatten hier ich
        ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in ins ist jede jedem jeden jeder jedes
        kann können kein keine keinem keinen keiner keines man mein meine meinem meinen meiner
        meines mich mir mit muss müssen nach nicht noch nun nur ob oder ohne sehr sein seine seinem
        seinen seiner seines seit selbst sich sie sind so soll sollen über um und uns unser unsere
        unserem unseren unter vom von vor war waren was weil welche welchem welchen welcher welches
        wenn wer werden wie wieder will wir wird wo wurde wurden zu zum zur zwischen
    """,
    "dutch": """
        aan achter af al als alle alles bij binnen ben bent dan dat de der deze die dit door dus een
        eens en er ge geen had hadden heb hebben heeft hem het hier hij hoe hun iemand iets ik in is
        je jij jou jouw jullie kan kon kunnen maar me mee meer men met mij mijn moet moeten na naar
        niet niets nog nu of om omdat onder ons onze ook op over te tegen toch toen tot tussen u uit
        uw van veel voor waar want waren was wat we wel werd wie wij wil worden wordt zal ze zelf
        zich zij zijn zo zonder zou
    """,
    "danish": """
        ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din
        dine disse dit dog du efter eller en end er et for fra ham han hans har havde have hende
        hendes her hos hun hvad hvem hvis hvor hvordan i ikke ind jeg jer jo kan kunne man mange med
        meget mellem men mig min mine mit mod ned noget nogle nu når og også om op os over på selv
        sig sin sine sit skal skulle som så sådan til ud under var ved vi vil ville vor være været
    """,
    "norwegian": """
        alle at av bare ble bli blir blitt både da de deg dem den denne der dere deres det dette di
        din disse ditt du eg ein eit ei eller en enn er et etter for fordi fra før ha hadde han hans
        har hennes her hos hun hva hvem hver hvilken hvis hvor hvordan hvorfor i ikke ikkje ingen
        inn inni ja jeg kan kunne man mange med meg mellom men mens mer mi min mine mitt mot må noe
        noen nå når og også om opp oss over på seg selv si sin sine sitt skal skulle slik som så
        sånn til um under ut uten var ved vi vil ville vår være vært å
    """,
    "swedish": """
        alla allt att av bara bli blir blev de dem den denna deras dess dessa det detta dig din dina
        ditt du där då efter ej eller en er era ert ett från för ha hade han hans har henne hennes
        hon honom hur här i icke ingen inte in jag ju kan kunde man med mellan men mig min mina mitt
        mot mycket måste ni nu när någon något några och om oss på samma sedan sig sin sina sitt
        själv ska skall skulle som så sådan till under upp ut utan vad var vara varit varje vem vi
        vid vilka vilken vilket vill vår våra vårt än är även över åt
    """,
    "finnish": """
        ei eivät emme en et ette eli että he heidän hän hänen häntä ja jo joka jos jotka jota jossa
        josta kuin kun kanssa me meidän minä minun minua mikä mitä miten missä mutta myös ne nämä
        nyt niin niiden niitä näiden näitä olen olet ole olemme olette oli olivat olla on ovat se
        sen sekä si sitä siinä siitä sinä sinun sinua tai te teidän tämä tämän tätä tässä tästä tuo
        tuon vaan vain vai voi
    """,
    "french": """
        à ai as a au aux avait avec avez avons ce cela ces cet cette chez ci comme dans de des donc
        dont du elle elles en entre es est et étaient était étant eu eux eût fut furent il ils je la
        le les leur leurs lui ma mais me mes moi mon même ne ni nos notre nous on ont ou où par pas
        plus pour pourquoi quand que quel quelle quelles quels qui sa sans se sera seront ses si son
        sont sous sur ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y
        c d j l m n s t qu
    """,
    "spanish": """
        a al algo algunas algunos ante antes aquel aquella como cómo con contra cual cuál cuando
        cuándo de del desde donde dónde durante e el él ella ellas ellos en entre era eran eres es
        esa esas ese eso esos esta está estaba estado están estar estas este esto estos estoy fue
        fueron ha había hace han has hasta hay he la las le les lo los más me mi mí mis mucho muchos
        muy nada ni no nos nosotros nuestra nuestro nuestros o os otra otras otro otros para pero
        poco por porque qué que quien quién quienes se sea ser si sí sido sin sobre son soy su sus
        también tan te tiene tienen toda todas todo todos tu tú tus un una unas uno unos vosotros y
        ya yo
    """,
    "portuguese": """
        a à ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois do dos e
        é ela elas ele eles em entre era eram essa essas esse esses esta está estão estar estava
        este estes eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas
        muito muitos na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas
        pelo pelos por porque qual quando que quem se sem ser será seu seus só sobre são sua suas
        também te tem têm teu tua um uma umas uns você vocês
    """,
    "italian": """
        a abbiamo ad agli ai al alla alle allo anche anzi avere aveva avevano c che chi ci come con
        contro cui da dagli dai dal dalla dalle dallo degli dei del della delle dello di dove e è ed
        era erano essere fra gli ha hai hanno ho i il in io la le lei li lo loro lui ma me mi mia
        mie miei mio molto ne negli nei nel nella nelle nello noi non nostra nostre nostri nostro o
        ogni per perché perchè più poi quale quali quando quella quelle quelli quello questa queste
        questi questo se sei senza si sia siamo siete sono su sua sue sugli sui sul sulla sulle
        sullo suo suoi ti tra tu tua tuo tutti tutto un una uno vi voi d l dell all nell sull dall
    """,
    "catalan": """
        a al als amb aquest aquesta aquestes aquests això aquell aquella cada com de del dels des on
        doncs dos el ella elles ells els en entre era és esta et fins ha han hi ho i jo la les li
        llur mai meu meva molt més ni no nosaltres nostra nostre o per però perquè quan que què qui
        sense ser seu seus seva si són sobre també te tot tots tu un una uns unes va van vosaltres d
        l m n s t
    """,
    "romanian": """
        a ai al ale am ar are as au avea ca care când ce cel cea cei cele cine cu cum că da dar de
        din doar după e ea ei el ele eu este era fi fie fost iar in în la le lor lui mai mă mea meu
        mi ne nici nu o ori pe pentru prin sa sau se sunt spre și şi să său te tu un una unei unui
        va voi vom
    """,
    "polish": """
        a aby ale albo ani bardzo bez bo by był była było były będzie ci co czy dla do gdy gdzie go
        i ich ile im ja jak jako je jego jej jest jestem już każdy kiedy która które którego której
        który których którzy kto lub ma mi mnie może mój my na nad nas nie nich nim niż o od on ona
        one oni oraz po pod przed przez przy również są się ta tak tam te tego tej ten też to ty
        tych tylko tym u w was we wszystko z za ze że
    """,
    "czech": """
        a aby ale ani až bez by byl byla bylo byly být co či do ho i já jak jako je jeho jej jejich
        její jen ještě ji jsem jsi jsme jsou jste k kde kdo když která které který kteří ke ma má
        mezi mi mně můj my na nad nebo není než nic o od on ona oni ono po pod podle pro proto
        protože před při s se si ta tak také tam te ten této tento to toho tom tu ty u už v ve však
        vy z za ze že
    """,
    "hungarian": """
        a az abban ahhoz ahogy ahol aki akik akkor alatt amely amelyek ami amit annak át azok azon
        azt be csak de egy el én és ez ezek ezt fel ha hogy hogyan ide is itt ki kell le lehet ma
        maga már még meg mely mert mi mint minden nagyon ne nek nem nincs ő ők ön pedig s sem
        számára szerint te ti ugy úgy van vagy vagyok volt volna
    """,
    "turkish": """
        acaba ama ancak bana bazı belki ben beni benim bir biz bize bizim bu buna bunu bunun bunlar
        çok çünkü da daha de değil diye en gibi hem hep hepsi her hiç için ile ise kadar kendi ki
        kim mı mi mu mü nasıl ne neden nerede niçin o olan olarak oldu olduğu olur ona onlar onu
        onun sen seni senin siz şey şu tüm var ve veya ya yani yok
    """,
    "indonesian": """
        ada adalah agar akan aku anda antara apa atau bagi bahwa banyak belum bisa bukan dalam dan
        dapat dari dengan di dia hanya harus ia ini itu jika juga kami kamu karena ke kepada kita
        lagi lebih maka mereka namun oleh pada para saat sampai saya seperti serta sudah telah
        tentang tetapi tidak untuk yang
    """,
    "russian": """
        а без бы был была были было быть в вам вас ваш весь во вот все всё всего всех вы где да для
        до его ее её ей ему если есть еще ещё же за здесь и из или им их к как какая какой ко когда
        кто ли лишь между меня мне мной может мы на над надо нам нас наш не него нее неё нет ни них
        но ну о об один он она они оно от перед по под после потому при про с сам себе себя со такой
        там тебя тем то тогда того тоже только том тот ты у уже хотя чего чем что чтобы чтоб эта эти
        этих это этого этой этом этот я
    """,
    "greek": """
        ο η το οι τα του της των τον την τους τις ένα μια μία ένας και κι να θα δεν μη μην με σε στο
        στη στην στον στους στις στα από για προς ως όπως που πως τι ποιος ποια ποιο αν όταν αλλά ή
        είναι ήταν έχει έχουν αυτό αυτός αυτή αυτά εγώ εσύ εμείς μας σας μου σου
    """,
    "arabic": """
        في من على إلى عن أن إن هذا هذه ذلك التي الذي الذين هو هي هم نحن أنا أنت كان كانت ما لا لم لن
        قد كل بعد قبل مع ثم أو و بين عند حتى إذا كما لكن بل غير أي
    """,
    "hindi": """
        का के की को में से है हैं था थी थे और या पर यह वह ये वे एक इस उस इन उन ने भी तो ही नहीं कि
        जो कर हो लिए साथ अपने अपना अपनी मैं हम तुम आप क्या कैसे
    """,
}
LANGUAGES = tuple(_WRITTEN)
STOP_WORDS = frozenset(_WRITTEN["english"].split())


def stop_words(language: str) -> frozenset[str]:
    """In lower case, as they are written; none for a language without a list.

    >>> "nicht" in stop_words("german"), len(stop_words("klingon"))
    (True, 0)
    """
    return frozenset(_WRITTEN.get(language, "").split())
