#include "files/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::ElementsAre;

Metadata sample() {
  Metadata md("model.gguf");
  md.add("int", {int64_t{7}});
  md.add("big", {~uint64_t{0}});
  md.add("float", {0.5});
  md.add("nan", {std::nan("")});
  md.add("bool", {true});
  md.add("text", {std::string("hi\n")});
  md.add("ints", {std::vector<int64_t>{1, -2}});
  md.add("floats", {std::vector<double>{0.5, 2.0}});
  md.add("bools", {std::vector<bool>{true, false}});
  md.add("texts", {std::vector<std::string>{"a", "b"}});
  md.add("empty", {MetaList{}});
  md.add("nested", {MetaList{{int64_t{1}}, {std::string("x")}}});
  md.add("object", {MetaObject{2}});
  return md;
}

TEST(Metadata, GettersGiveValuesOfTheirType) {
  const Metadata md = sample();
  EXPECT_EQ(md.get_int("int"), 7);
  EXPECT_EQ(md.get_float("float"), 0.5);
  EXPECT_EQ(md.get_float("int"), 7.0);
  EXPECT_EQ(md.get_float("big"), 18446744073709551616.0);
  EXPECT_EQ(md.get_bool("bool"), true);
  EXPECT_EQ(md.get_string("text"), "hi\n");
  EXPECT_THAT(*md.get_ints("ints"), ElementsAre(1, -2));
  EXPECT_THAT(*md.get_floats("floats"), ElementsAre(0.5, 2.0));
  EXPECT_THAT(*md.get_floats("ints"), ElementsAre(1.0, -2.0));
  EXPECT_THAT(*md.get_bools("bools"), ElementsAre(true, false));
  EXPECT_THAT(*md.get_strings("texts"), ElementsAre("a", "b"));
  EXPECT_EQ(md.require_int("int", 7, 7), 7);
  EXPECT_EQ(md.require_float("float", 0, 1), 0.5);
  EXPECT_EQ(md.require_string("text"), "hi\n");
  EXPECT_EQ(md.require_strings("texts").size(), 2u);
  EXPECT_EQ(md.list_size("nested"), 2);
  EXPECT_EQ(md.list_size("bools"), 2);
  EXPECT_TRUE(md.has("object"));
}

TEST(Metadata, AnEmptyListIsAListOfEachType) {
  const Metadata md = sample();
  EXPECT_TRUE(md.get_ints("empty")->empty());
  EXPECT_TRUE(md.get_floats("empty")->empty());
  EXPECT_TRUE(md.get_bools("empty")->empty());
  EXPECT_TRUE(md.get_strings("empty")->empty());
  EXPECT_EQ(md.list_size("empty"), 0);
}

TEST(Metadata, AbsentKeysGiveNothing) {
  const Metadata md = sample();
  EXPECT_FALSE(md.has("none"));
  EXPECT_FALSE(md.get_int("none"));
  EXPECT_FALSE(md.get_float("none"));
  EXPECT_FALSE(md.get_bool("none"));
  EXPECT_FALSE(md.get_string("none"));
  EXPECT_FALSE(md.get_ints("none"));
  EXPECT_FALSE(md.get_floats("none"));
  EXPECT_FALSE(md.get_bools("none"));
  EXPECT_FALSE(md.get_strings("none"));
  EXPECT_FALSE(md.list_size("none"));
}

TEST(Metadata, ErrorsNameFileKeyFoundAndExpected) {
  const Metadata md = sample();
  EXPECT_EQ(error_of([&] { (void)md.get_int("text"); }),
            "model.gguf: text: found the string \"hi\\x0a\", expected an integer");
  EXPECT_EQ(error_of([&] { (void)md.get_int("int", 8, 9); }),
            "model.gguf: int: found the integer 7, expected an integer from 8 to 9");
  EXPECT_EQ(error_of([&] { (void)md.require_int("big", 1); }),
            "model.gguf: big: found the integer 18446744073709551615, expected an integer of at least 1");
  EXPECT_EQ(error_of([&] { (void)md.require_int("none", 1, 2); }),
            "model.gguf: none: is missing, expected an integer from 1 to 2");
  EXPECT_EQ(error_of([&] { (void)md.get_int("float"); }),
            "model.gguf: float: found the number 0.5, expected an integer");
  EXPECT_EQ(error_of([&] { (void)md.require_float("nan"); }),
            "model.gguf: nan: found the number nan, expected a finite number");
  EXPECT_EQ(error_of([&] { (void)md.require_float("float", 1, 2); }),
            "model.gguf: float: found the number 0.5, expected a number from 1 to 2");
  EXPECT_EQ(error_of([&] { (void)md.get_float("bool"); }), "model.gguf: bool: found true, expected a number");
  EXPECT_EQ(error_of([&] { (void)md.get_bool("int"); }),
            "model.gguf: int: found the integer 7, expected true or false");
  EXPECT_EQ(error_of([&] { (void)md.get_string("ints"); }),
            "model.gguf: ints: found a list of 2 integers, expected a string");
  EXPECT_EQ(error_of([&] { (void)md.get_ints("floats"); }),
            "model.gguf: floats: found a list of 2 numbers, expected a list of integers");
  EXPECT_EQ(error_of([&] { (void)md.get_floats("bools"); }),
            "model.gguf: bools: found a list of 2 booleans, expected a list of numbers");
  EXPECT_EQ(error_of([&] { (void)md.get_bools("texts"); }),
            "model.gguf: texts: found a list of 2 strings, expected a list of booleans");
  EXPECT_EQ(error_of([&] { (void)md.get_strings("object"); }),
            "model.gguf: object: found an object, expected a list of strings");
  EXPECT_EQ(error_of([&] { (void)md.list_size("text"); }),
            "model.gguf: text: found the string \"hi\\x0a\", expected a list");
  EXPECT_EQ(error_of([&] { sample().add("int", {true}); }), "model.gguf: int: this key occurs twice");
}

}  // namespace
}  // namespace headrace
