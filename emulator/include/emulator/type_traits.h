/*!
 * \file type_traits.h
 * \brief The short names of <type_traits> and index_sequence, which C++11 and C++14 do not have.
 */
#ifndef EMULATOR_TYPE_TRAITS_H_
#define EMULATOR_TYPE_TRAITS_H_

#pragma GCC system_header

#include <cstddef>
#include <type_traits>
#include <utility>

namespace emulator {

template <bool condition, typename T = void>
using enable_if_t = typename std::enable_if<condition, T>::type;
template <bool condition, typename T, typename Else>
using conditional_t = typename std::conditional<condition, T, Else>::type;
template <typename... T>
using common_type_t = typename std::common_type<T...>::type;
template <typename T>
using remove_all_extents_t = typename std::remove_all_extents<T>::type;
template <typename T>
using remove_const_t = typename std::remove_const<T>::type;
template <typename T>
using remove_cv_t = typename std::remove_cv<T>::type;
template <typename T>
using remove_pointer_t = typename std::remove_pointer<T>::type;
template <typename T>
using remove_reference_t = typename std::remove_reference<T>::type;

template <typename T>
constexpr bool is_aggregate_v = __is_aggregate(typename std::remove_cv<T>::type);
template <typename T, typename U>
constexpr bool is_same_v = std::is_same<T, U>::value;
template <typename T>
constexpr bool is_const_v = std::is_const<T>::value;
template <typename T>
constexpr bool is_enum_v = std::is_enum<T>::value;
template <typename T>
constexpr bool is_integral_v = std::is_integral<T>::value;
template <typename T>
constexpr bool is_trivially_copyable_v = std::is_trivially_copyable<T>::value;

/*! \brief Whether a function can be called without arguments. */
template <typename F, typename Enable = void>
struct is_called : std::false_type {};
template <typename F>
struct is_called<F, decltype(void(std::declval<F>()()))> : std::true_type {};

/*! \brief Numbers as a type, to spread tuples by. */
template <size_t... I>
struct index_sequence {};
template <size_t n, size_t... I>
struct make_indices : make_indices<n - 1, n - 1, I...> {};
template <size_t... I>
struct make_indices<0, I...> {
  typedef index_sequence<I...> type;
};
template <typename... T>
using index_sequence_for = typename make_indices<sizeof...(T)>::type;

}  // namespace emulator

#endif  // EMULATOR_TYPE_TRAITS_H_
