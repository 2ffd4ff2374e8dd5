#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace headrace::client {

/// Short English words, each of which is a single token, together with the space before it, in most vocabularies.
inline constexpr std::array<std::string_view, 128> kWords{
    "time",    "year",   "people",  "way",     "day",     "man",      "thing",    "woman",   "life",   "child",
    "world",   "school", "state",   "family",  "student", "group",    "country",  "problem", "hand",   "part",
    "place",   "case",   "week",    "company", "system",  "program",  "question", "work",    "number", "night",
    "point",   "home",   "water",   "room",    "mother",  "area",     "money",    "story",   "fact",   "month",
    "lot",     "right",  "study",   "book",    "eye",     "job",      "word",     "issue",   "side",   "kind",
    "head",    "house",  "service", "friend",  "father",  "power",    "hour",     "game",    "line",   "end",
    "member",  "law",    "car",     "city",    "name",    "team",     "minute",   "idea",    "body",   "back",
    "parent",  "face",   "level",   "office",  "door",    "health",   "person",   "art",     "war",    "history",
    "party",   "result", "change",  "morning", "reason",  "research", "girl",     "guy",     "moment", "air",
    "teacher", "force",  "street",  "paper",   "ground",  "table",    "music",    "court",   "land",   "film",
    "tree",    "field",  "fire",    "river",   "road",    "space",    "color",    "light",   "sound",  "sea",
    "rock",    "stone",  "wind",    "ship",    "horse",   "bird",     "fish",     "food",    "glass",  "green",
    "gold",    "king",   "plan",    "price",   "market",  "science",  "letter",   "bank"};

/// The parts of `text` between spaces, tabs and line ends.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

}  // namespace headrace::client
