#include "data/csv_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>

#include "brigade/base/error.h"
#include "data/csv_reader.h"
#include "data/gzip_source.h"
#include "data/replay.h"
#include "support/errors.h"

extern "C" int fuzz_csv(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace csv_table_test {

using Names = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;
using Values = std::vector<float>;

CsvTable parse(const std::string& text, const CsvOptions& options = {}) {
  const Bytes bytes = text_bytes(text);
  MemorySource source("some.csv", bytes);
  return parse_csv(source, options);
}

void expect_refused(const std::string& text, std::initializer_list<std::string> parts, const CsvOptions& options = {}) {
  expect_error<DataError>([&] { parse(text, options); }, parts);
}

const CsvOptions kNoHeader = {.header = CsvHeader::kNone};

TEST(CsvTable, ReadsNumbersAndNamedLabels) {
  const CsvTable table = parse("length,width,species\n5.1,3.5,setosa\n4.9,-3e-1,virginica\n1,2,setosa\n");
  EXPECT_EQ(table.columns, 2u);
  EXPECT_EQ(table.values, (Values{5.1F, 3.5F, 4.9F, -0.3F, 1, 2}));
  EXPECT_EQ(table.labels, (Labels{0, 1, 0}));
  EXPECT_EQ(table.class_names, (Names{"setosa", "virginica"}));
  EXPECT_EQ(table.classes, 2);
}

TEST(CsvTable, TakesTheLabelFromAnyColumn) {
  const std::string text = "a,b,c\n1,2,3\n4,5,6\n";
  EXPECT_EQ(parse(text, {.label = "b"}).labels, (Labels{2, 5}));
  EXPECT_EQ(parse(text, {.label = "b"}).values, (Values{1, 3, 4, 6}));
  EXPECT_EQ(parse(text, {.label = 0}).labels, (Labels{1, 4}));
  EXPECT_EQ(parse(text, {.label = 2}).labels, (Labels{3, 6}));
  EXPECT_EQ(parse(text).labels, (Labels{3, 6}));
  EXPECT_EQ(parse(text, {.label = -3}).labels, (Labels{1, 4}));
}

TEST(CsvTable, ReadsLinesOfEitherEndWithoutAHeader) {
  for (const std::string text : {"1,2\n3,4\n", "1,2\r\n3,4\r\n", "1,2\n3,4", "1,2\r\n\r\n\n3,4\n\n", "\n1,2\n3,4",
                                 "\xEF\xBB\xBF"
                                 "1,2\n3,4\n"}) {
    EXPECT_EQ(parse(text, kNoHeader).values, (Values{1, 3})) << text;
    EXPECT_EQ(parse(text, kNoHeader).labels, (Labels{2, 4})) << text;
  }
}

TEST(CsvTable, ReadsQuotedFields) {
  const CsvTable table =
      parse("\"a,\"\"b\"\"\",\"c\nd\"\n\"1.5\",\"say \"\"hi\"\",\r\nthere\"\n2,\"\"\"\"\n", {.label = "c\nd"});
  EXPECT_EQ(table.values, (Values{1.5, 2}));
  EXPECT_EQ(table.class_names, (Names{"\"", "say \"hi\",\r\nthere"}));
  EXPECT_EQ(parse("1;\"2\"", {.header = CsvHeader::kNone, .separator = ';'}).labels, Labels{2});
}

TEST(CsvTable, RoundsNumbersToTheNearestFloat) {
  const auto value = [](const std::string& text) { return parse(text + ",0", kNoHeader).values.at(0); };
  EXPECT_EQ(value(" +7 "), 7);
  EXPECT_EQ(value("\t.5"), 0.5);
  EXPECT_EQ(value("6."), 6);
  EXPECT_EQ(value("-1E2"), -100);
  EXPECT_EQ(value("3.4028235e38"), std::numeric_limits<float>::max());
  // Half a unit above 1, and a little more: a double in between would hide it and round to 1.
  EXPECT_EQ(value("1.000000059604644775390626"), std::bit_cast<float>(0x3f800001));
  EXPECT_EQ(value("1e-46"), 0);
  EXPECT_EQ(value("1.4e-45"), std::numeric_limits<float>::denorm_min());
}

TEST(CsvTable, RefusesWhatIsNoNumberNamingLineAndColumn) {
  expect_refused("a,b\n1,x\nNA,y\n",
                 {"some.csv: line 3, column 0 (\"a\"): \"NA\" is no number", "leave out the column"});
  expect_refused("a,b\n,y\n", {"line 2, column 0 (\"a\"): the number is missing"});
  expect_refused("a,b\n \"1\",y\n", {"line 2 has a quote within a field"});
  expect_refused("1,2,3\n4, ,6", {"line 2, column 1: the number is missing"}, kNoHeader);
  expect_refused("height,b\n1,2", {"line 1, column 0: \"height\" is no number", "say so with .header"}, kNoHeader);
  expect_refused("1,2\nheight,2", {"line 2, column 0", "Encode it"}, kNoHeader);
  for (const std::string text : {"nan", "inf", "-inf", "infinity", "0x10", "1_000", "1e", "1 2", "1,5e", "+-1", "--1",
                                 "-", "+", ".", "1.2.3", "\x1b[2J"}) {
    expect_refused("\"" + text + "\",0", {"column 0", "is no number"}, kNoHeader);
  }
  for (const std::string text : {"3.4028236e38", "-1e39", "1e400"}) {
    expect_refused(text + ",0", {"line 1, column 0: \"" + text + "\" does not fit into float32"}, kNoHeader);
  }
}

TEST(CsvTable, CountsLinesWhateverRowsAndQuotesDo) {
  expect_refused("a,b\n\n1,\"x\ny\"\nz,2", {"line 5, column 0 (\"a\"): \"z\""});
  expect_refused("a,b\n1,\"x\ny", {"line 2 opens a quote that is never closed"});
}

TEST(CsvTable, RefusesRowsThatAreNotWhole) {
  expect_refused("a,b\n1,2,3\n", {"line 2 has 3 fields, where line 1 has 2"});
  expect_refused("\na,b\n1\n", {"line 3 has 1 fields, where line 2 has 2"});
  expect_refused("a,b\n1,\n", {"line 2, column 1 (\"b\"): the label is missing"});
}

TEST(CsvTable, RefusesQuotesThatDoNotFit) {
  expect_refused("a,b\n1,x\"y\n", {"line 2 has a quote within a field"});
  expect_refused("a,b\n1,\"x\"y\n", {"line 2 has something between a closing quote and the separator"});
  expect_refused("a,b\n1,\"x", {"line 2 opens a quote that is never closed"});
}

TEST(CsvTable, RefusesBytesThatAreNoText) {
  expect_refused("a,b\r1,2\r", {"line 1 has a carriage return that no line feed follows"});
  expect_refused(std::string("a,b\n1,2\0\n", 9), {"line 2 holds a byte of zero"});
}

TEST(CsvTable, RefusesTablesWithoutRowsOrColumns) {
  expect_refused("", {"holds no line"});
  expect_refused("\n\r\n", {"holds no line"});
  expect_refused("a,b\n", {"holds no row behind its header"});
  expect_refused("a;b\n1;2\n", {"line 1 has one field", "separator ','"});
}

TEST(CsvTable, RefusesAColumnThatIsNotThere) {
  const std::string text = "length,width,species\n1,2,x\n";
  expect_refused(text, {"has no column \"spezies\" among the 3 of line 1; did you mean \"species\"?"},
                 {.label = "spezies"});
  expect_refused(text, {"has 3 columns, so there is no number 3: they go from 0 to 2", "to -3"}, {.label = 3});
  expect_refused(text, {"no number -4"}, {.label = -4});
  expect_refused("a,b,a\n1,2,3\n", {"line 1 has two columns \"a\""}, {.label = "a"});
}

TEST(CsvTable, TakesWholeNumbersForClassesAndAnythingElseForNames) {
  EXPECT_EQ(parse("1,2\n1,007\n", kNoHeader).labels, (Labels{2, 7}));
  EXPECT_EQ(parse("1,2\n1,007\n", kNoHeader).classes, 8);
  EXPECT_EQ(parse("1,2\n1,007\n", kNoHeader).class_names, Names{});
  const CsvTable negative = parse("1,1\n1,-1\n1,1\n", kNoHeader);
  EXPECT_EQ(negative.labels, (Labels{1, 0, 1}));
  EXPECT_EQ(negative.class_names, (Names{"-1", "1"}));
  EXPECT_EQ(parse("1,b\n1,10\n1,9\n", kNoHeader).class_names, (Names{"10", "9", "b"}));
  EXPECT_EQ(parse("1,2.0\n1,1\n", kNoHeader).class_names, (Names{"1", "2.0"}));
  EXPECT_EQ(parse("1,99999999999999999999\n1,1\n", kNoHeader).classes, 2);
}

TEST(CsvTable, HoldsLabelsToTheClassesGiven) {
  const auto with_classes = [](std::int64_t classes) {
    return CsvOptions{.header = CsvHeader::kNone, .classes = classes};
  };
  EXPECT_EQ(parse("1,2\n", with_classes(10)).classes, 10);
  expect_refused("1,0\n1,2\n", {"line 2: label 2 is outside of the 2 classes, 0 to 1"}, with_classes(2));
  expect_refused("1,a\n1,b\n", {"has 2 different labels, such as \"a\", where .classes says 3"}, with_classes(3));
  expect_refused("1,65536\n", {"line 1: label 65536 would make for more than 65536 classes"}, kNoHeader);
  EXPECT_EQ(parse("1,65536\n", with_classes(100000)).classes, 100000);

  const CsvOptions named = {.header = CsvHeader::kNone, .class_names = {"b", "a", "2"}};
  EXPECT_EQ(parse("1,a\n1,2\n", named).labels, (Labels{1, 2}));
  EXPECT_EQ(parse("1,a\n1,2\n", named).class_names, (Names{"b", "a", "2"}));
  EXPECT_EQ(parse("1,a\n1,2\n", named).classes, 3);
  expect_refused("1,a\n1,c\n", {"line 2: the label \"c\" is not among the 3 class names given"}, named);
}

TEST(CsvTable, RefusesMoreLabelsThanThereCanBeClasses) {
  std::string text;
  for (int i = 0; i <= 65536; ++i) text += "1,x" + std::to_string(i) + "\n";
  expect_refused(text, {"line 65537: there are more than 65536 different labels"}, kNoHeader);
}

TEST(CsvTable, RefusesLabelsTooLongToNameAClass) {
  EXPECT_EQ(parse("1," + std::string(1024, 'x'), kNoHeader).class_names, Names{std::string(1024, 'x')});
  expect_refused("1,a\n1," + std::string(1025, 'x'), {"line 2: the label \"xxx", "\"... has more than 1024 bytes"},
                 kNoHeader);
}

TEST(CsvTable, RefusesOptionsThatDoNotGoTogether) {
  const auto parsing = [](const CsvOptions& options) { return [options] { parse("1,2", options); }; };
  expect_error<InvalidArgument>(parsing({.header = CsvHeader::kNone, .label = "a"}), {"named \"a\"", "no header"});
  for (const char separator : {'"', '\n', '\r', '\0'}) {
    expect_error<InvalidArgument>(parsing({.separator = separator}), {"the separator must be none of"});
  }
  expect_error<InvalidArgument>(parsing({.classes = -1}), {"-1 classes"});
  expect_error<InvalidArgument>(parsing({.class_names = {"a"}, .classes = 1}), {"either the number of classes or"});
  expect_error<InvalidArgument>(parsing({.class_names = {"a", "b", "a"}}), {"\"a\" is given twice"});
}

TEST(CsvTable, HoldsToItsLimits) {
  CsvOptions options = kNoHeader;
  options.max_bytes = 4;
  EXPECT_EQ(parse("1,2\n", options).labels, Labels{2});
  expect_refused("1,23\n", {"holds more than the limit of 4 bytes", "max_bytes"}, options);
  expect_refused("1,\"" + std::string(kCsvMaxRecord, 'x') + "\"", {"line 1 begins a row of more than 16777216 bytes"},
                 kNoHeader);
  expect_refused(std::string(kCsvMaxFields, ','), {"line 1 has more than 1048576 fields"}, kNoHeader);
}

TEST(CsvTable, DoesNotUnpackABomb) {
  const Bytes packed = gzip(Bytes(std::size_t{64} << 20, std::byte{'1'}));
  GzipSource source(std::make_unique<MemorySource>("bomb.csv.gz", packed));
  expect_error<DataError>([&] { parse_csv(source, kNoHeader); }, {"bomb.csv.gz: line 1 begins a row of more than"});
}

TEST(CsvReplay, HoldsForTheCorpusItsTruncationsAndItsByteChanges) {
  replay_corpus(fuzz_csv, BRIGADE_FUZZ_CORPUS "/csv");
}

}  // namespace csv_table_test
}  // namespace brigade::data
