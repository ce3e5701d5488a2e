import pytest

from t2t.vocabulary import moses

# What sacremoses gives after transformers' replacement of punctuation, for every rule.
WORDS = {
    "Hello, world!": "Hello , world !",
    "Mr. O'Neill paid $3,000.50, didn't he? No. 5. No. It's the 1980's...": (
        "Mr. O 'Neill paid $ 3,000.50 , didn 't he ? No. 5 . No . It 's the 1980 's ..."
    ),
    "a,b 1,a a,1 5,": "a , b 1 , a a , 1 5 ,",
    "wait....what .. ok.. ": "wait .... what .. ok ..",
    "e.g. this etc. Next U.S.A. said p. 5 St. x. Y": "e.g. this etc . Next U.S.A. said p . 5 St. x . Y",
    "the end.' ": "the end . '",
    "('quoted') ``x'' „so‟ “curly” ‘single’": '( \' quoted \' ) " x " " so ‟ " curly " \' single\'',
    "«\u00a0oui\u00a0» 50\u00a0% 1\u00a0000 5\u00a0ºC nº\u00a07 quoi\u00a0?": '" oui " 50 % 1.000 5 ºC nº 7 quoi ?',
    "x ( y ) : z ; 5 % )": "x ( y ) : z ; 5 % )",
    '"quote", he said. "end."': '" quote , " he said . " end . "',
    "中文，标点。 下一句！「引」": '中 文 , 标 点 . 下 一 句 ! " 引 "',
    "１２３～％【x】《y》…": '123 ~ % [ x ] " y ... "',
    "한국어 हिन्दी العربية ไทย": "한 국 어 हिन्दी العربية ไทย",
    "co-op well—known a–b @user #tag x/y under_score": "co-op well - known a-b @ user # tag x / y under _ score",
    "zero\u200bwidth soft\u00adhyphen tab\tnew\nline": "zerowidth softhyphen tabnewline",
    "n'est-ce pas? l'été 'tis rock'n'roll": "n 'est-ce pas ? l 'été ' tis rock 'n'roll",
    "emoji 😀👍🏽 ½ ² Ⅷ": "emoji 😀 👍 🏽 ½ ² Ⅷ",
    "ს. საქართველო. x. Ab": "ს . საქართველო. x . Ab",
    "": "",
    " \u200b ": "",
}


@pytest.mark.parametrize("text", WORDS)
def test_words(text):
    assert " ".join(moses.words(text)) == WORDS[text]
