/*!
 * \file end_with_threads.cc
 * \brief The end of a program with threads of its own, which has its variables once.
 *
 * One thread's kernel would have them while another thread's host code uses them.
 */
#define EMULATOR_WITH_THREADS
#include "end.cc"
