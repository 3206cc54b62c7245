/*
 * uninitialized - for a large array on the stack of a hot function that is written before it is read.
 *
 * The build fills variables with zeros where they begin (-ftrivial-auto-var-init=zero), which costs as much
 * as the array is large.
 */
#ifndef MNEMON_BASE_UNINITIALIZED_H
#define MNEMON_BASE_UNINITIALIZED_H

#if defined(__has_attribute) && __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#else
#define UNINITIALIZED
#endif

#endif
