/* What a file is, as the kernel decides it; for "#!" lines the running kernel is asked. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/load/elf.h"
#include "unit/test.h"

static Elf64_Ehdr good(void)
{
	Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};

	return eh;
}

TEST(header)
{
	Elf64_Ehdr eh = good();

	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), 0);
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh) - 1, false), -ENOEXEC);
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh) - 1, true), -EIO);
	eh.e_type = ET_REL;
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), -ENOEXEC);
	/* The kernel does not ask what an interpreter is. */
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), true), 0);
	eh = good();
	eh.e_machine = 183 /* EM_AARCH64 */;
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), -ENOEXEC);
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), true), -ELIBBAD);
	eh = good();
	eh.e_phentsize = 32;
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), -ENOEXEC);
	eh = good();
	eh.e_phnum = 0;
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), -ENOEXEC);
	eh.e_phnum = 65536 / sizeof(Elf64_Phdr);
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), 0);
	eh.e_phnum++;
	EXPECT_EQ(elf_check_header(&eh, sizeof(eh), false), -ENOEXEC);
}

TEST(kinds)
{
	Elf64_Ehdr eh = good();

	EXPECT_EQ(exec_classify((u8 *)&eh, sizeof(eh)), EXEC_ELF);
	eh.e_machine = EM_386;
	EXPECT_EQ(exec_classify((u8 *)&eh, sizeof(eh)), EXEC_ELF32);
	eh.e_machine = EM_X86_64;
	eh.e_ident[EI_CLASS] = ELFCLASS32; /* x32 */
	EXPECT_EQ(exec_classify((u8 *)&eh, sizeof(eh)), EXEC_ELF32);
	eh.e_machine = 183 /* EM_AARCH64 */;
	EXPECT_EQ(exec_classify((u8 *)&eh, sizeof(eh)), EXEC_UNKNOWN);
	EXPECT_EQ(exec_classify((const u8 *)"#!/bin/sh\n", 10), EXEC_SCRIPT);
	EXPECT_EQ(exec_classify((const u8 *)"#", 1), EXEC_UNKNOWN);
	EXPECT_EQ(exec_classify((const u8 *)"", 0), EXEC_UNKNOWN);
	EXPECT_EQ(exec_classify((u8 *)&eh, 3), EXEC_UNKNOWN);
}

TEST(interp_path)
{
	Elf64_Phdr ph = {.p_filesz = 5};

	EXPECT_EQ(elf_check_interp(&ph, "/abc"), 0);
	EXPECT_EQ(elf_check_interp(&ph, "/abcd"), -ENOEXEC);
	ph.p_filesz = 1;
	EXPECT_EQ(elf_check_interp(&ph, ""), -ENOEXEC);
	ph.p_filesz = 4097;
	EXPECT_EQ(elf_check_interp(&ph, ""), -ENOEXEC);
}

/* Runs the script with the kernel; the output of /bin/echo, or "errno N". */
static void ask_kernel(const char *path, char *out, size_t size)
{
	int p[2], status;
	ssize_t n;
	pid_t pid;

	ASSERT(!pipe(p));
	pid = fork();
	if (!pid) {
		char *argv[] = {(char *)"zero", NULL};

		dup2(p[1], 1);
		execve(path, argv, argv + 1);
		dprintf(1, "errno %d\n", errno);
		_exit(0);
	}
	close(p[1]);
	n = read(p[0], out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	close(p[0]);
	waitpid(pid, &status, 0);
}

static void hold_against_kernel(const char *text, size_t len)
{
	char path[64], ours[1024], kernel[1024], interp[EXEC_HEAD], arg[EXEC_HEAD];
	u8 head[EXEC_HEAD] = {0};
	int fd, ret;

	snprintf(path, sizeof(path), "/tmp/anyperf-script-%d", (int)getpid());
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0755);
	ASSERT(fd >= 0);
	ASSERT(write(fd, text, len) == (ssize_t)len);
	close(fd);
	ask_kernel(path, kernel, sizeof(kernel));
	unlink(path);

	memcpy(head, text, len < sizeof(head) ? len : sizeof(head));
	ret = script_parse(head, len < sizeof(head) ? len : sizeof(head), interp, arg);
	if (ret < 0)
		snprintf(ours, sizeof(ours), "errno %d\n", -ret);
	else if (strcmp(interp, "/bin/echo") != 0)
		snprintf(ours, sizeof(ours), "errno %d\n", ENOENT);
	else
		snprintf(ours, sizeof(ours), "%s%s%s\n", arg, ret ? " " : "", path);
	if (strcmp(ours, kernel) != 0)
		TEST_FAIL("\"%.80s\": the kernel \"%s\", we \"%s\"", text, kernel, ours);
}

TEST(script_lines)
{
	static const char *const lines[] = {
		"#!/bin/echo\n",
		"#!/bin/echo a\n",
		"#!  /bin/echo \t a b  c \t \n",
		"#!/bin/echo",
		"#!/bin/echo x",
		"#!\n",
		"#!   \n",
		"#! \t\n/bin/echo\n",
		"#!/bin/echo\tx\n",
		"#!/bin/nonexistent x\n",
		"#!bin/echo\n",
		"#!/bin/echo \r\n",
	};
	char longer[400];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		hold_against_kernel(lines[i], strlen(lines[i]));
	/* Around the 256 bytes that the kernel reads. */
	for (int len = 240; len < 262; len++) {
		memset(longer, 'a', sizeof(longer));
		memcpy(longer, "#!/bin/echo ", 12);
		longer[len - 1] = '\n';
		hold_against_kernel(longer, (size_t)len);
		memset(longer, ' ', sizeof(longer));
		memcpy(longer, "#!", 2);
		memcpy(longer + len - 10, "/bin/echo\n", 10);
		hold_against_kernel(longer, (size_t)len);
	}
}
