"""The tables of the sample's poems; `sample.py` says how they are read.

A poem has four lines of five or of seven characters. Lines 3 and 4, the target, form a couplet. Its two lines follow
one pattern, position by position: where it names one of `_PAIRS` the two characters are fixed partners, elsewhere they
are two different characters of the same kind. Line 4 rhymes with line 2, which stands in the context, and never on the
same character. Creatures and plants of all lines belong to the season that line 1 names.

No character of `_PAIRS` stands in a table from which lines 3 and 4 draw freely: whoever sees it knows its partner.
"""

from __future__ import annotations

_PAIRS = {
    "number": ("一千", "三九", "萬孤", "百半"),
    "measure": ("里年", "尺載", "程番"),
    "colour": ("白青", "紅綠", "黃翠", "碧丹", "紫蒼"),
    "direction": ("東西", "南北"),
    "locative": ("上下", "前後", "裡外"),
    "season": ("春秋", "夏冬"),
    "hour": ("朝暮", "曉夕", "晨昏"),
    "weather": ("風雨", "雲月", "霜露", "煙霞", "雪冰"),
    "quality": ("高深", "遠近", "寒暖", "新舊", "疏密", "輕重"),
    "adverb": ("未已", "猶又", "初將", "不空"),
}

# What the lines of a couplet have in common. The last character, `close_*`, is free in line 3 and rhymes in line 4.
_COUPLETS = (
    ("number", "creature_{theme}", "verb", "colour", "close_noun"),
    ("place", "locative", "creature_{theme}", "adverb", "close_verb"),
    ("colour", "plant_{theme}", "direction", "place", "close_verb"),
    ("weather", "verb", "direction", "place", "close_verb"),
    ("hour", "weather", "verb", "quality", "close_noun"),
    ("quality", "place", "number", "plant_{theme}", "close_verb"),
    ("person", "verb", "colour", "weather", "close_noun"),
    ("season", "thing", "adverb", "gaze", "close_noun"),
)

# What a line of seven characters has before a line of five. `#2` is a second draw beside that of the line of five.
_HEADS = (
    ("region", "locative#2"),
    ("number#2", "measure"),
    ("doubled",),
    ("direction#2", "region"),
    ("hour#2", "sound"),
)

# Characters of one group rhyme with each other (level-tone groups of the classical rhyme books): nouns, then verbs.
_RHYMES = {
    "you": ("樓舟愁洲頭鷗丘鉤", "流遊留休浮悠幽收"),
    "xian": ("天泉船邊田蓮弦川", "眠懸傳圓妍鮮旋"),
    "yang": ("鄉塘裳觴床廊香光", "涼狂忘藏揚茫"),
    "geng": ("城情名箏鶯羹", "明行生平晴鳴橫迎"),
    "wei": ("衣扉磯薇暉圍", "飛歸稀微違肥"),
    "zhen": ("人塵津鄰身鱗濱", "親頻貧陳巡"),
    "dong": ("宮叢鴻翁虹弓", "同窮融通籠"),
    "hui": ("臺梅杯苔雷", "來開回催栽"),
}


def _template(pattern: tuple[str, ...], line: str) -> str:
    """A pattern as the template of the `upper` or the `lower` line of a couplet."""
    return "".join(_slot(kind, line) for kind in pattern)


def _slot(kind: str, line: str) -> str:
    if kind.partition("#")[0] in _PAIRS:
        return f"{{{kind}.{line}}}"
    if line == "upper":
        return f"{{{kind}}}"
    # `#2` also where the table is another one: line 2 has drawn its rhyme without a number.
    rhyming = kind.replace("close_", "rhyme_{rhyme}_")
    return f"{{{rhyming}#2}}"


def _templates(patterns: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return (("upper", "lower"), *((_template(pattern, "upper"), _template(pattern, "lower")) for pattern in patterns))


def _both_orders(pairs: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Each pair with either character in the upper line."""
    return (("upper", "lower"), *(tuple(pair) for pair in pairs), *(tuple(pair[::-1]) for pair in pairs))


RECORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "scene": (
        ("context", "target"),
        ("{line_1}，{line_2}。", "{couplet.upper}，{couplet.lower}。"),
        ("{head_1}{line_1}，{head_2}{line_2}。", "{head.upper}{couplet.upper}，{head.lower}{couplet.lower}。"),
    ),
    "couplet": _templates(_COUPLETS),
    "head": _templates(_HEADS),
    **{kind: _both_orders(pairs) for kind, pairs in _PAIRS.items()},
}

WORDS: dict[str, tuple[str, ...]] = {
    "theme": ("spring", "autumn", "summer", "winter"),
    "rhyme": tuple(_RHYMES),
    # Lines 1 and 2. `#3` keeps line 1 from using up a character of the couplet.
    "line_1": (
        "{opening_{theme}}{place#3}{plant_{theme}#3}{close_verb#3}",
        "{opening_{theme}}{verb#3}{place#3}{close_noun#3}",
        "{place#3}{plant_{theme}#3}{opening_{theme}}{close_verb#3}",
        "{opening_{theme}}{creature_{theme}#3}{manner}{close_verb#3}",
    ),
    "line_2": (
        "{wanderer}{gaze#3}{longing}{rhyme_{rhyme}_noun}",
        "{wanderer}{question}{rhyme_{rhyme}_verb}",
        "{wanderer}{linger}{place#4}{rhyme_{rhyme}_noun}",
        "{longing}{place#4}{question}{rhyme_{rhyme}_verb}",
    ),
    "head_1": ("江南", "故園", "城外", "湖上", "山中", "天涯", "客裡", "橋畔"),
    "head_2": ("不知", "遙憐", "閒看", "唯有", "可惜", "卻見", "記得"),
    "opening_spring": ("二月", "細雨", "東風", "清明", "芳草"),
    "opening_summer": ("五月", "長日", "薰風", "梅雨", "驟雨"),
    "opening_autumn": ("八月", "西風", "重陽", "寒露", "微霜"),
    "opening_winter": ("臘月", "北風", "積雪", "歲暮", "殘冰"),
    "wanderer": ("遊子", "行人", "扁舟", "故友", "老僧", "歸客", "漁父", "短笛"),
    "question": ("何日", "幾時", "獨自", "終日", "豈得", "何處"),
    "longing": ("故", "舊", "遠", "空", "寒", "殘"),
    "manner": ("相", "自", "正", "漸", "爭"),
    "linger": ("宿", "倚", "立", "坐", "出"),
    # Lines 3 and 4 (and, with numbers, 1 and 2).
    "place": tuple("江山溪村亭園橋林峰岸關河嶺塔驛庭"),
    "region": tuple("湖窗郭巷簾渡閣"),
    "verb": tuple("入過映隨隱照繞迷伴依臨拂"),
    "gaze": tuple("望尋憶對問別聽"),
    "person": tuple("僧客漁樵農童"),
    "thing": tuple("琴書燈帆棋詩劍"),
    "sound": tuple("鐘笛鼓歌角"),
    "doubled": ("漠漠", "寂寂", "蕭蕭", "遲遲", "點點", "漫漫", "隱隱"),
    "creature_spring": tuple("燕蝶鳩蜂鵑"),
    "creature_summer": tuple("蟬蛙鷺鯉螢"),
    "creature_autumn": tuple("雁鴉鹿蛩鶴"),
    "creature_winter": tuple("雀鵲犬鷹狐"),
    "plant_spring": tuple("柳花桃杏蘭"),
    "plant_summer": tuple("荷竹榴槐蕉"),
    "plant_autumn": tuple("菊楓桂蘆梧"),
    "plant_winter": tuple("松柏杉蘿荊"),
    "close_noun": tuple("水樹草路葉夢酒浪石鳥鏡"),
    "close_verb": tuple("落起去靜冷盡醉滿老散動"),
    **{f"rhyme_{group}_noun": tuple(nouns) for group, (nouns, _) in _RHYMES.items()},
    **{f"rhyme_{group}_verb": tuple(verbs) for group, (_, verbs) in _RHYMES.items()},
}
