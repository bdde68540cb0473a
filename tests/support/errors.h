// Checks of an error's type and of part of its text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define EXPECT_ERROR(statement, type, text) \
  EXPECT_THAT([&] { (void)(statement); }, ::testing::ThrowsMessage<type>(::testing::HasSubstr(text)))
