/*
 * PURPOSE: what the library takes of base and elf, under names of its own: a program that links
 * libanyperf.a has a right to all names that do not begin with ap_. The build puts this file before
 * each source of the library.
 */
#ifndef LIB_OWN_NAMES_H
#define LIB_OWN_NAMES_H

#define check_failed        ap__check_failed
#define refusal_set         ap__refusal_set
#define refusal_why         ap__refusal_why
#define refusal_remedy      ap__refusal_remedy
#define elf_file_open       ap__elf_file_open
#define elf_file_segment    ap__elf_file_segment
#define elf_file_section    ap__elf_file_section
#define elf_file_symbols    ap__elf_file_symbols
#define elf_file_symbol     ap__elf_file_symbol
#define elf_file_find       ap__elf_file_find
#define elf_file_relocation ap__elf_file_relocation
#define elf_file_text       ap__elf_file_text

#endif
