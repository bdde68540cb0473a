// Checks of an exception's type and of parts of its text.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <string>

namespace brigade {

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

}  // namespace brigade

// The same for one statement and one part.
#define EXPECT_ERROR(statement, type, text) ::brigade::expect_error<type>([&] { (void)(statement); }, {text})
