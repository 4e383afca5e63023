/*!
 * \file claims.h
 * \brief What the passes believe of a kernel, said so that the compiler refuses what is not so.
 *
 * A second version of a kernel (loops.h) rests on beliefs about names: that a variable keeps its
 * value, that an expression is made of numbers. What keeps its value is declared `const` there; the
 * rest is one of the lines below. emucc.py leaves out a second version that does not compile.
 */
#ifndef EMULATOR_CLAIMS_H_
#define EMULATOR_CLAIMS_H_

#pragma GCC system_header

#include "emulator/type_traits.h"
#include "emulator/vector_types.h"

namespace emulator {

template <typename T>
struct is_address : std::is_pointer<T> {};
template <typename T>
struct is_address<T* __restrict> : std::true_type {};

/*! \brief A number or an address: its operators are the language's own. */
template <typename T>
constexpr bool is_number = (std::is_arithmetic<T>::value || is_address<remove_const_t<T>>::value) &&
                           !std::is_volatile<T>::value;

/*! \brief A name's type and its expression's: it is no variable, or one that nothing changes. */
template <typename Type, typename Expression>
constexpr bool is_constant = (is_number<Type> || is_enum_v<Type>) &&
                             (!std::is_lvalue_reference<Expression>::value || is_const_v<Type>);

/*! \brief What a constant object's member is, which `mutable` would change. */
template <typename Expression>
constexpr bool is_member = is_const_v<remove_reference_t<Expression>> &&
                           is_number<remove_const_t<remove_reference_t<Expression>>>;

/*! \brief Whether a type is one of CUDA's short vectors, which have no functions. */
template <typename T>
struct is_vector : std::false_type {};
#define EMULATOR_ARE_VECTORS(Name)               \
  template <>                                    \
  struct is_vector<Name##1> : std::true_type {}; \
  template <>                                    \
  struct is_vector<Name##2> : std::true_type {}; \
  template <>                                    \
  struct is_vector<Name##3> : std::true_type {}; \
  template <>                                    \
  struct is_vector<Name##4> : std::true_type {};
EMULATOR_ARE_VECTORS(char)
EMULATOR_ARE_VECTORS(uchar)
EMULATOR_ARE_VECTORS(short)
EMULATOR_ARE_VECTORS(ushort)
EMULATOR_ARE_VECTORS(int)
EMULATOR_ARE_VECTORS(uint)
EMULATOR_ARE_VECTORS(long)
EMULATOR_ARE_VECTORS(ulong)
EMULATOR_ARE_VECTORS(longlong)
EMULATOR_ARE_VECTORS(ulonglong)
EMULATOR_ARE_VECTORS(float)
EMULATOR_ARE_VECTORS(double)
#undef EMULATOR_ARE_VECTORS

/*! \brief What is named of a constant object: behind a pointer, or of a type without functions. */
template <typename Expression, typename Value = remove_reference_t<Expression>>
constexpr bool is_part = !is_const_v<Value> || is_number<remove_cv_t<Value>> || is_enum_v<Value> ||
                         is_vector<remove_cv_t<Value>>::value;

/*! \brief What the language's own [] is for. */
template <typename T>
constexpr bool is_indexed = std::is_array<remove_reference_t<T>>::value ||
                            is_address<remove_cv_t<remove_reference_t<T>>>::value;

/*! \brief What becomes a parameter of its own type, by copying its members. */
template <typename Expression, typename T, typename Value = remove_reference_t<Expression>>
constexpr bool is_copied = is_same_v<remove_cv_t<Value>, remove_cv_t<T>> &&
                           (is_number<remove_cv_t<T>> || is_enum_v<T> ||
                            (is_aggregate_v<T> && is_trivially_copyable_v<T>));

/*! \brief Whether `T name = value;` is the same as `T name(value);`. */
template <typename T, typename Value>
constexpr bool is_copy =
    !std::is_class<T>::value || is_same_v<T, remove_cv_t<remove_reference_t<Value>>>;

}  // namespace emulator

// Of a type, of a variable, of a constant of the program, of a parameter's member.
#define EMULATOR_IS_NUMBER(...) \
  static_assert(::emulator::is_number<__VA_ARGS__>, "`" #__VA_ARGS__ "` is not a number");
#define EMULATOR_NUMBER(name) \
  static_assert(::emulator::is_number<decltype(name)>, "`" #name "` is not a number");
// Of what a pointer leads to.
#define EMULATOR_ELEMENT(name)                                                                   \
  static_assert(::emulator::is_number<                                                           \
                    ::emulator::remove_cv_t<::emulator::remove_reference_t<decltype(name[0])>>>, \
                "`" #name "[0]` is not a number");
#define EMULATOR_INTEGER(name)                                                            \
  static_assert(                                                                          \
      ::emulator::is_integral_v<decltype(name)> && ::emulator::is_number<decltype(name)>, \
      "`" #name "` is not an integer");
#define EMULATOR_IS_WHOLE(name)                                                       \
  static_assert(::emulator::is_integral_v<::emulator::remove_cv_t<decltype(name)>> || \
                    ::emulator::is_enum_v<::emulator::remove_cv_t<decltype(name)>>,   \
                "`" #name "` is not an integer");
#define EMULATOR_IS_CONSTANT(name)                                         \
  static_assert(::emulator::is_constant<decltype(name), decltype((name))>, \
                "`" #name "` may change");
#define EMULATOR_IS_MEMBER(name) \
  static_assert(::emulator::is_member<decltype((name))>, "`" #name "` may change");
#define EMULATOR_IS_PART(name) \
  static_assert(::emulator::is_part<decltype((name))>, "`" #name "` may be told from a constant");
#define EMULATOR_IS_INDEXED(name)                                               \
  static_assert(::emulator::is_indexed<decltype(name)>, "`" #name               \
                                                        "` may be told from a " \
                                                        "constant");
#define EMULATOR_IS_COPIED(name, ...)                                 \
  static_assert(::emulator::is_copied<decltype((name)), __VA_ARGS__>, \
                "`" #name "` may be told from a constant");
// Copying it is copying its members.
#define EMULATOR_IS_AGGREGATE(name)                                                       \
  static_assert(::emulator::is_aggregate_v<::emulator::remove_const_t<decltype(name)>> && \
                    ::emulator::is_trivially_copyable_v<decltype(name)>,                  \
                "copying `" #name "` may do more than copying its members");

#endif  // EMULATOR_CLAIMS_H_
