// SPDX-License-Identifier: GPL-2.0
/* A link whose capacity is a function of time, above any queueing discipline.
 *
 * A schedule is a list of segments that begins at a time of CLOCK_REALTIME and, at its end, repeats
 * or holds its last segment. Before its beginning the first segment holds.
 *
 * CAPACITY_RATE: a segment is a length and a rate. A frame leaves when the link has carried the one
 * before it, to the nanosecond: the part of a nanosecond that rounding adds is carried over. At rate
 * 0 nothing leaves; with CAPACITY_DROPS the queue is emptied as well, and stays empty.
 *
 * CAPACITY_OPPORTUNITIES: a segment is a gap and a number of bytes that may leave at its end, as in
 * mahimahi's traces. A frame leaves at the instant that carries its last byte. What an empty queue
 * does not use is lost.
 *
 * A timer may fire late. While `awaited`, frames have been waiting since before the instant that it
 * was set for, so the link behaves as if it had fired in time.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

enum {
	CAPACITY_UNSPEC,
	CAPACITY_SEGMENTS,	/* struct segment[] */
	CAPACITY_APPEND,	/* u32: the segments follow those of earlier messages */
	CAPACITY_MODE,		/* u32 */
	CAPACITY_REPEAT,	/* u32 */
	CAPACITY_START,		/* u64: ns of CLOCK_REALTIME */
	__CAPACITY_MAX,
};
#define CAPACITY_MAX (__CAPACITY_MAX - 1)
enum { CAPACITY_RATE, CAPACITY_OPPORTUNITIES };
#define CAPACITY_DROPS BIT_ULL(63)

struct segment {
	u64 ns;
	u64 value;	/* bytes/s, or bytes */
};

struct place {
	u32 at;		/* index of the segment */
	u64 begin;	/* when it begins, on CLOCK_MONOTONIC */
};

struct capacity {
	struct Qdisc *qdisc;
	struct qdisc_watchdog watchdog;
	struct segment *segments;
	u32 count, mode, repeat;
	bool awaited;
	u64 start;
	/* CAPACITY_RATE */
	struct place link, now;
	u64 free_at;	/* when the last frame has been carried */
	u64 surplus;	/* byte-ns that rounding gave that frame too much */
	/* CAPACITY_OPPORTUNITIES */
	u32 at;
	u64 next;	/* instant of segments[at] */
	u64 credit;	/* bytes that are left of the last instant */
};

static u64 rate_of(const struct segment *segment)
{
	return segment->value & ~CAPACITY_DROPS;
}

static u64 end_of(const struct capacity *q, const struct place *place)
{
	if (!q->repeat && place->at == q->count - 1)
		return U64_MAX;
	return place->begin + q->segments[place->at].ns;
}

static void advance(const struct capacity *q, struct place *place)
{
	place->begin += q->segments[place->at].ns;
	if (++place->at == q->count)
		place->at = 0;
}

/* When `bytes` that begin at q->free_at have been carried; U64_MAX if never. */
static u64 carry(struct capacity *q, u64 bytes)
{
	u64 t = q->free_at;
	u64 left = bytes * NSEC_PER_SEC - q->surplus;

	for (;;) {
		u64 rate = rate_of(&q->segments[q->link.at]), end = end_of(q, &q->link);

		if (rate) {
			u64 need = div64_u64(left + rate - 1, rate);

			if (end == U64_MAX || need <= end - t) {
				q->surplus = need * rate - left;
				return t + need;
			}
			left -= (end - t) * rate;
		} else if (end == U64_MAX) {
			return U64_MAX;
		}
		t = end;
		advance(q, &q->link);
	}
}

static void left_queue(struct Qdisc *sch, struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
}

/* Whether frames that come now are dropped; those that waited when that began are dropped, too. */
static bool drops(struct Qdisc *sch, struct capacity *q, u64 now)
{
	bool dropping = q->segments[q->now.at].value & CAPACITY_DROPS;
	bool was = dropping;
	struct sk_buff *skb;

	while (now >= end_of(q, &q->now)) {
		advance(q, &q->now);
		dropping = q->segments[q->now.at].value & CAPACITY_DROPS;
		was |= dropping;
	}
	while (was && (skb = qdisc_dequeue_peeked(q->qdisc))) {
		left_queue(sch, skb);
		qdisc_qstats_drop(sch);
		kfree_skb(skb);
	}
	return dropping;
}

static bool wait_until(struct capacity *q, u64 when)
{
	q->awaited = true;
	if (when != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, when);
	return false;
}

static bool may_leave_by_rate(struct capacity *q, u64 now, u32 bytes)
{
	if (now < q->free_at)
		return wait_until(q, q->free_at);
	if (!q->awaited) {
		q->free_at = now;
		q->surplus = 0;
	}
	while (q->free_at >= end_of(q, &q->link))
		advance(q, &q->link);
	if (!rate_of(&q->segments[q->link.at])) {
		q->free_at = end_of(q, &q->link);
		return wait_until(q, q->free_at);
	}
	q->free_at = carry(q, bytes);
	q->awaited = false;
	return true;
}

static void next_instant(struct capacity *q)
{
	if (++q->at == q->count)
		q->at = 0;
	q->next += q->segments[q->at].ns;
	if (!q->repeat && !q->at)
		q->next = U64_MAX;
}

static bool may_leave_by_opportunity(struct capacity *q, u64 now, u32 bytes)
{
	while (!q->awaited && q->next < now)
		next_instant(q);
	while (q->credit < bytes) {
		if (now < q->next)
			return wait_until(q, q->next);
		q->credit += q->segments[q->at].value;
		next_instant(q);
	}
	q->credit -= bytes;
	q->awaited = true;	/* the next frame has been waiting beside this one, or finds no credit */
	return true;
}

static struct sk_buff *capacity_dequeue(struct Qdisc *sch)
{
	struct capacity *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;
	bool may_leave;

	if (q->count && q->mode == CAPACITY_RATE)
		drops(sch, q, now);
	skb = q->qdisc->ops->peek(q->qdisc);
	if (!skb) {
		q->awaited = false;
		q->credit = 0;
		return NULL;
	}
	if (!q->count)
		may_leave = true;
	else if (q->mode == CAPACITY_RATE)
		may_leave = may_leave_by_rate(q, now, qdisc_pkt_len(skb));
	else
		may_leave = may_leave_by_opportunity(q, now, qdisc_pkt_len(skb));
	if (!may_leave) {
		qdisc_qstats_overlimit(sch);
		return NULL;
	}
	skb = qdisc_dequeue_peeked(q->qdisc);
	if (unlikely(!skb))
		return NULL;
	left_queue(sch, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static int capacity_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct capacity *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	if (q->count && q->mode == CAPACITY_RATE && drops(sch, q, ktime_get_ns()))
		return qdisc_drop(skb, sch, to_free);
	ret = qdisc_enqueue(skb, q->qdisc, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

static void rewind(struct capacity *q)
{
	q->link = q->now = (struct place){ .at = 0, .begin = q->start };
	q->free_at = 0;
	q->surplus = 0;
	q->awaited = false;
	q->at = 0;
	q->next = q->start + (q->count ? q->segments[0].ns : 0);
	q->credit = 0;
}

static void capacity_reset(struct Qdisc *sch)
{
	struct capacity *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
	qdisc_watchdog_cancel(&q->watchdog);
}

static const struct nla_policy capacity_policy[CAPACITY_MAX + 1] = {
	[CAPACITY_SEGMENTS] = { .type = NLA_BINARY },
	[CAPACITY_APPEND] = { .type = NLA_U32 },
	[CAPACITY_MODE] = { .type = NLA_U32 },
	[CAPACITY_REPEAT] = { .type = NLA_U32 },
	[CAPACITY_START] = { .type = NLA_U64 },
};

/* A schedule that repeats must take time, and carry something in it. */
static bool is_possible(const struct segment *segments, u32 count, bool repeat)
{
	u64 ns = 0, carried = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		ns += segments[i].ns;
		carried |= rate_of(&segments[i]) && segments[i].ns;
	}
	return count && (!repeat || (ns && carried));
}

static int capacity_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct capacity *q = qdisc_priv(sch);
	struct nlattr *tb[CAPACITY_MAX + 1];
	struct segment *segments, *old;
	u32 more, kept, repeat;
	int err = nla_parse_nested(tb, CAPACITY_MAX, opt, capacity_policy, extack);

	if (err < 0)
		return err;
	if (!tb[CAPACITY_SEGMENTS])
		return -EINVAL;
	more = nla_len(tb[CAPACITY_SEGMENTS]) / sizeof(*segments);
	kept = tb[CAPACITY_APPEND] ? q->count : 0;
	repeat = tb[CAPACITY_REPEAT] ? nla_get_u32(tb[CAPACITY_REPEAT]) : 0;
	segments = kvmalloc_array(kept + more, sizeof(*segments), GFP_KERNEL);
	if (!segments)
		return -ENOMEM;
	if (kept)
		memcpy(segments, q->segments, kept * sizeof(*segments));
	memcpy(segments + kept, nla_data(tb[CAPACITY_SEGMENTS]), more * sizeof(*segments));
	if (!is_possible(segments, kept + more, repeat)) {
		kvfree(segments);
		return -EINVAL;
	}
	sch_tree_lock(sch);
	old = q->segments;
	q->segments = segments;
	q->count = kept + more;
	q->mode = tb[CAPACITY_MODE] ? nla_get_u32(tb[CAPACITY_MODE]) : CAPACITY_RATE;
	q->repeat = repeat;
	if (tb[CAPACITY_START])
		q->start = nla_get_u64(tb[CAPACITY_START]) -
			   ktime_to_ns(ktime_mono_to_real(ns_to_ktime(0)));
	rewind(q);
	sch_tree_unlock(sch);
	kvfree(old);
	return 0;
}

static int capacity_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct capacity *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->qdisc = &noop_qdisc;
	return opt ? capacity_change(sch, opt, extack) : 0;
}

static void capacity_destroy(struct Qdisc *sch)
{
	struct capacity *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->qdisc);
	kvfree(q->segments);
}

static int capacity_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			       struct tcmsg *tcm)
{
	struct capacity *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static int capacity_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			  struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct capacity *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &q->qdisc);
	return 0;
}

static struct Qdisc *capacity_leaf(struct Qdisc *sch, unsigned long arg)
{
	return ((struct capacity *)qdisc_priv(sch))->qdisc;
}

static unsigned long capacity_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void capacity_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops capacity_class_ops = {
	.graft = capacity_graft,
	.leaf = capacity_leaf,
	.find = capacity_find,
	.walk = capacity_walk,
	.dump = capacity_dump_class,
};

static struct Qdisc_ops capacity_ops __read_mostly = {
	.cl_ops = &capacity_class_ops,
	.id = "capacity",
	.priv_size = sizeof(struct capacity),
	.enqueue = capacity_enqueue,
	.dequeue = capacity_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = capacity_init,
	.reset = capacity_reset,
	.destroy = capacity_destroy,
	.change = capacity_change,
	/* no .dump: `tc` does not know this discipline, and would print its options as no JSON */
	.owner = THIS_MODULE,
};

static int __init capacity_module_init(void)
{
	return register_qdisc(&capacity_ops);
}
module_init(capacity_module_init)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A link whose capacity is a function of time");
