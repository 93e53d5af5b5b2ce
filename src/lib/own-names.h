/*
 * PURPOSE: what the library takes of base, elf, model and session, under names of its own: a
 * program that links libanyperf.a has a right to all names that do not begin with ap_. The build
 * puts this file before each source of the library.
 */
#ifndef LIB_OWN_NAMES_H
#define LIB_OWN_NAMES_H

#define check_failed          ap__check_failed
#define refusal_set           ap__refusal_set
#define refusal_why           ap__refusal_why
#define refusal_remedy        ap__refusal_remedy
#define wire_reply_take       ap__wire_reply_take
#define bootstrap_pair        ap__bootstrap_pair
#define cpuid_profile_find    ap__cpuid_profile_find
#define fd_message_send       ap__fd_message_send
#define helper_start          ap__helper_start
#define receive_fd            ap__receive_fd
#define send_fd               ap__send_fd
#define sealed_memory_is      ap__sealed_memory_is
#define sealed_memory_map     ap__sealed_memory_map
#define sealed_memory_new     ap__sealed_memory_new
#define session_address       ap__session_address
#define session_cpuid         ap__session_cpuid
#define session_relax         ap__session_relax
#define session_segment_slots ap__session_segment_slots
#define cost_class_name       ap__cost_class_name
#define machine_cache_name    ap__machine_cache_name
#define machine_check         ap__machine_check
#define machine_lacks         ap__machine_lacks
#define machine_next_field    ap__machine_next_field
#define machine_parse         ap__machine_parse
#define machine_subjects      ap__machine_subjects
#define machine_wrong         ap__machine_wrong
#define machines_shipped      ap__machines_shipped
#define elf_file_open         ap__elf_file_open
#define elf_file_segment      ap__elf_file_segment
#define elf_file_section      ap__elf_file_section
#define elf_file_symbols      ap__elf_file_symbols
#define elf_file_symbol       ap__elf_file_symbol
#define elf_file_find         ap__elf_file_find
#define elf_file_each_symbol  ap__elf_file_each_symbol
#define elf_file_relocation   ap__elf_file_relocation
#define elf_file_text         ap__elf_file_text

#endif
