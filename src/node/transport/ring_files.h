/*
 * ring_files - what a data directory keeps of its ring:
 *
 *      DIR/ring/charter       the newest version that this node has seen (docs/formats/charter.md)
 *      DIR/ring/charter.later one that only a later program can read, to pass it on
 *      DIR/ring/charter.plain the last one that programs without stewards can read, for such nodes
 *      DIR/ring/membership    its invitation, if it has one
 *      DIR/ring/peers         places of the ring where it was last reached, to come back after a restart
 *
 * Each is written beside its place, synced and renamed: whole or not at all. What is damaged is named, and
 * never replaced by something else; only the peers, which are hints, count as none then.
 */
#ifndef MNEMON_NODE_TRANSPORT_RING_FILES_H
#define MNEMON_NODE_TRANSPORT_RING_FILES_H

#include "protocol/ring/membership.h"

enum { RING_FILES_PEERS_MAX = 100 };

/* ERR_NOT_FOUND: the node is in no ring. The signature is checked; memory gets the bytes of the file. */
enum err ring_files_read_charter(const char *directory, struct charter *ret_charter,
                                 uint8_t memory[CHARTER_SIZE_MAX], struct bytes *ret_encoded,
                                 struct err_detail *detail) MUST_CHECK;

/* As charter_write() gives it. The directories are made. What was there of layout 1 is kept as charter.plain
 * if this one is of a later layout. */
enum err ring_files_write_charter(const char *directory, struct bytes charter,
                                  struct err_detail *detail) MUST_CHECK;

/* The last charter of layout 1. Returns its size; 0: there is none. */
size_t ring_files_read_plain(const char *directory, uint8_t memory[CHARTER_SIZE_MAX]);

/*
 * A charter of a later layout, kept for others. Returns its size; 0: there is none. If this program can read
 * it by now, and it succeeds the one that counts, it takes its place first, and the size is 0.
 */
size_t ring_files_read_later(const char *directory, uint8_t memory[CHARTER_SIZE_MAX]);
enum err ring_files_write_later(const char *directory, struct bytes charter,
                                struct err_detail *detail) MUST_CHECK;

/* None is a success. */
enum err ring_files_read_membership(const char *directory, struct membership *ret_membership,
                                    struct err_detail *detail) MUST_CHECK;
enum err ring_files_write_membership(const char *directory, const struct membership *membership,
                                     struct err_detail *detail) MUST_CHECK;

/* How many there are. */
size_t ring_files_read_peers(const char *directory, struct peer out[RING_FILES_PEERS_MAX]);
enum err ring_files_write_peers(const char *directory, const struct peer *peers, size_t count,
                                struct err_detail *detail) MUST_CHECK;

/* They are kept as *.left, since a founder's charter cannot be made again. ERR_NOT_FOUND. */
enum err ring_files_leave(const char *directory, struct err_detail *detail) MUST_CHECK;

/* ---- lists of peers as bytes (DIR/ring/peers, DIR/crowd-contacts). Layout: docs/formats/charter.md ---- */

enum { PEERS_FILE_MARK_SIZE = 4, PEERS_FILE_COUNT_MAX = 100 };
enum { PEERS_FILE_SIZE_MAX = 16 + PEERS_FILE_COUNT_MAX * (16 + 2 + PEER_KEY_SIZE) };

/* Into memory of PEERS_FILE_SIZE_MAX. mark: of the list, PEERS_FILE_MARK_SIZE letters. */
struct bytes peers_file_write(const char *mark, const struct peer *peers, size_t count, void *memory);

/* How many there are; 0: it is no such list, or damaged, and contacts have to be found otherwise. */
size_t peers_file_read(const char *mark, struct bytes bytes, struct peer *out, size_t peers_max);

#endif
