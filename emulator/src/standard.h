/*!
 * \file standard.h
 * \brief Those of C++'s own headers that most sources here include, read once for all of them.
 *
 * It is precompiled and put before each source; every source names what it needs all the same.
 */
#ifndef EMULATOR_STANDARD_H_
#define EMULATOR_STANDARD_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#endif  // EMULATOR_STANDARD_H_
