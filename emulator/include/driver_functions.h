/*!
 * \file driver_functions.h
 * \brief Makers of the runtime's types, which emulator/boxes.h has.
 */
#include "emulator/boxes.h"
