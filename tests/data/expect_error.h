// Checks the type of an exception and parts of its message.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <string>

namespace brigade::data {

template <class Error, class Function>
void expect_error(Function&& function, std::initializer_list<std::string> parts) {
  try {
    function();
  } catch (const Error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << error.what();
    }
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another type: " << error.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

}  // namespace brigade::data
