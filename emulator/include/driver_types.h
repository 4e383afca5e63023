/*!
 * \file driver_types.h
 * \brief The runtime's types, which emulator/driver_types.h has.
 */
#include "emulator/driver_types.h"
