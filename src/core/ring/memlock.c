/*
 * Locked memory [RING-13]: a user may lock perf_event_mlock_kb for each CPU with mappings of
 * events. What goes beyond is its process's, up to RLIMIT_MEMLOCK; past that it takes
 * CAP_IPC_LOCK, or perf_event_paranoid at -1.
 */
#include "core/core-priv.h"

#include <stdlib.h>

static struct mlock_account *account_get(struct core *core, bool process, u32 id)
{
	struct mlock_account *account;

	list_for_each_entry (account, &core->mlock_accounts, link)
		if (account->process == process && account->id == id) {
			account->refs++;
			return account;
		}
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->process = process;
	account->id = id;
	account->refs = 1;
	list_add_tail(&account->link, &core->mlock_accounts);
	return account;
}

/* The account if nobody has it any more: the caller frees it. */
static struct mlock_account *account_put(struct mlock_account *account, u64 pages)
{
	if (!account)
		return NULL;
	CHECK(account->refs && account->pages >= pages);
	account->pages -= pages;
	if (--account->refs)
		return NULL;
	list_del(&account->link);
	return account;
}

void memlock_uncharge(struct core *core, struct mlock_charge *charge)
{
	struct mlock_account *user = account_put(charge->user, charge->user_pages);
	struct mlock_account *process = account_put(charge->process, charge->process_pages);

	(void)core;
	free(user);
	free(process);
	*charge = (struct mlock_charge){0};
}

static u64 users_pages(const struct core *core)
{
	u64 online = 0;

	for (u32 i = 0; i < core->nr_cpus; i++)
		online += core->cpus[i].online;
	return core->sysctl.mlock_kb < 0
		       ? 0
		       : (u64)core->sysctl.mlock_kb * 1024 / core->page_size * online;
}

int memlock_charge(struct event *event, struct task *task, u64 pages, struct mlock_charge *charge)
{
	struct core *core = event->core;
	u64 limit, free_pages = users_pages(core), left;
	u32 uid;

	*charge = (struct mlock_charge){0};
	if (!core->ops->mlock_limit)
		return 0;
	core->ops->mlock_limit(core->ctx, task, &uid, &limit);
	limit = limit == ~0ull ? limit : limit / core->page_size;
	charge->user = account_get(core, false, uid);
	charge->process = account_get(core, true, (u32)task->tgid);
	if (!charge->user || !charge->process) {
		memlock_uncharge(core, charge);
		return core_refuse(core, -ENOMEM, NO_MEMORY, .name = {"a buffer"});
	}
	/* The sysctl may have been lowered since: then nothing of it is left. */
	free_pages -= min_u64(free_pages, charge->user->pages);
	left = limit - min_u64(limit, charge->process->pages);
	charge->user_pages = min_u64(pages, free_pages);
	charge->process_pages = pages - charge->user_pages;
	if (charge->process_pages > left && core->sysctl.paranoid > -1 &&
	    !core->ops->capable(core->ctx, task, CORE_CAP_IPC_LOCK)) {
		charge->user_pages = charge->process_pages = 0;
		memlock_uncharge(core, charge);
		return core_refuse(
			core, -EPERM, BUFFER_LIMIT,
			.number = {pages, pages * core->page_size / 1024},
			.name = {"the buffer", "kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK"},
			.remedy = {REMEDY_RAISE_MLOCK});
	}
	charge->user->pages += charge->user_pages;
	charge->process->pages += charge->process_pages;
	return 0;
}
