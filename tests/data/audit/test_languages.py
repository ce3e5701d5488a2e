"""Languages by a text that exists in all of them: the first article of the Universal Declaration of Human Rights."""

import numpy as np
import pytest
from reference import audit as oracle

from t2t.data.audit import languages, text_statistics, units

ARTICLE = {
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا "
    "بروح الإخاء.",
    "bg": "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и "
    "следва да се отнасят помежду си в дух на братство.",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím "
    "a mají spolu jednat v duchu bratrství.",
    "da": "Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornuft og "
    "samvittighed, og de bør handle mod hverandre i en broderskabets ånd.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
    "begabt und sollen einander im Geiste der Brüderlichkeit begegnen.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
    "conscience and should act towards one another in a spirit of brotherhood.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón "
    "y conciencia, deben comportarse fraternalmente los unos con los otros.",
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu "
    "järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et "
    "de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "hu": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és "
    "lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.",
    "id": "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal "
    "dan hati nurani dan hendaknya bergaul satu sama lain dalam semangat persaudaraan.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e "
    "di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand "
    "en geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni "
    "rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
    "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "ro": "Toate ființele umane se nasc libere și egale în demnitate și în drepturi. Ele sunt înzestrate cu "
    "rațiune și conștiință și trebuie să se comporte unele față de altele în spiritul fraternității.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и "
    "совестью и должны поступать в отношении друг друга в духе братства.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De har utrustats med förnuft och "
    "samvete och bör handla gentemot varandra i en anda av gemenskap.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
    "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю "
    "і повинні діяти у відношенні один до одного в дусі братерства.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được "
    "tạo hóa ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
    "zh": "人人生而自由,在尊严和权利上一律平等。",
}


def tell(texts: list[str]) -> list[str]:
    codes, offsets = units.code_points(texts)
    numbers = languages.tell_languages(units.hash_units(texts), languages.count_scripts(codes, offsets))
    return [languages.LANGUAGES[number] for number in numbers.tolist()]


def test_languages_of_one_text():
    assert tell(list(ARTICLE.values())) == list(ARTICLE)


def test_what_is_no_running_text_is_undetermined():
    assert tell(["", "12.5 3,4 !!", "Anna Karenina", "foo = bar + baz(quux)", "the"]) == ["und"] * 5


def test_frequent_words_are_single_units_and_are_counted_as_in_a_list():
    for words in languages.FREQUENT_WORDS.values():
        assert all(oracle.split_units(word) == [word] for word in words.split())
    texts = [ARTICLE["en"], "", ARTICLE["de"]]
    counts = languages.count_frequent_words(units.hash_units(texts))
    for text, row in zip(texts, counts, strict=True):
        for code, number in zip(languages.LANGUAGES, row, strict=True):
            words = languages.FREQUENT_WORDS.get(code, "").split()
            assert number == sum(unit in words for unit in oracle.split_units(text))


@pytest.mark.parametrize(("name", "text"), [("Hangul", "한글"), ("Han", "漢字"), ("Kana", "カナ"), ("other", "ｆ")])
def test_scripts(name, text):
    codes, offsets = units.code_points(["", text])
    expected = np.zeros((2, len(languages.SCRIPTS)), int)
    expected[1, languages.SCRIPTS.index(name)] = len(text)
    assert np.array_equal(languages.count_scripts(codes, offsets), expected)


def test_shares_of_languages_are_reported():
    texts = [ARTICLE["de"], ARTICLE["de"], ARTICLE["th"]]
    found = text_statistics.measure(texts, units.hash_units(texts))
    assert found.documents_of[languages.LANGUAGES.index("de")] == 2
    assert found.characters_of[languages.LANGUAGES.index("th")] == len(ARTICLE["th"])
