/* The additions to the program's code as Valgrind translates it.

   Part of Tidemark's recorder, a Valgrind tool.
   Licence: GPL-2.0-or-later; see LICENSE in this folder.

   A superblock may be left at each of its side exits, and so executes one of several *runs*: a run
   begins where the superblock does and ends at an exit. Everything about a run but its data
   addresses is known now, and is written to the log once, as a definition with a number. What the
   translated code adds at run time is the number and one word an access: its address. Behind each
   exit it replaces the number by that of the next longer run. The collector puts the rest in:
   instruction fetches, sizes, kinds, instruction counts, page numbers.

   So the added code has no branch but one test a superblock (is there room?), and needs no
   register but the one that points into the log.

   Nor does an access need its word whose address is constant, or a constant away from that of
   another in the same superblock: the definition tells the difference.

   A load and a store that follow each other at the same address are one access of both kinds, as
   in lackey's trace. */

#include "pub_tool_basics.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_xarray.h"

#include "log.h"
#include "translate.h"

/* A definition is that of all runs of a superblock, which have numbers in a row. It has a word an
   instruction and a word an access; the top bit tells them apart. An access has, from the top: how
   its address is found (2 bits), its kinds (3), its size (13), the word of the log its address is
   in or counted from (12), and how far from it (32, signed). A constant address is a word of its
   own, after the access's. A form that no access has stands where a run ends. */
#define ITEM_ACCESS (1ULL << 63)
#define ITEM_FORM 61
#define ITEM_KINDS 58
#define ITEM_BYTES 45
#define ITEM_SLOT 32
#define ITEM_BYTES_MAX ((1 << 13) - 1)
#define ITEMS_MAX (LOG_ENTRY_WORDS_MAX - 8)
#define SLOTS_MAX 4000

enum { FORM_LOGGED = 0, FORM_DERIVED = 1, FORM_CONSTANT = 2, FORM_END = 3 };

/* A superblock with more side exits has numbers that are not used again. */
#define RUNS_REUSED_MAX 64

/* A superblock's definition, kept to be written again for a forked child. */
typedef struct {
   UInt count;
   ULong* items; /* null: the number is free, or not the first of its superblock */
} Definition;

/* A translated superblock and the numbers of its runs. */
typedef struct {
   VgHashNode node; /* the key is the address the superblock was translated for */
   UInt runs;
   UInt number; /* of the shortest; the others follow */
} Translated;

static XArray* definitions; /* of Definition; the index is a run's number */
static XArray* numbers_free[RUNS_REUSED_MAX + 1]; /* first numbers, by how many are in a row */
static VgHashTable* superblocks;

/* The known value of a temporary: it is `offset` more than another. */
typedef struct {
   IRTemp base;
   Long offset;
} Value;

/* A word of the log that holds the address of an access. */
typedef struct {
   Value value;
} Slot;

/* The superblock being translated. */
static struct {
   IRSB* out;
   IRTemp next;      /* where in the log this superblock writes: first the number of its run */
   UInt slots;       /* words behind that, so far */
   UInt count;       /* items so far */
   ULong items[ITEMS_MAX];
   Int load_last;    /* the item of the load just made, or -1 */
   IRExpr* address_last;
   UInt bytes_last;
   Value* values;    /* of each temporary of the superblock that came in */
   Slot slot[SLOTS_MAX];
   Bool is_open;     /* a run has begun that has not ended */
   IRStmt* bump;     /* the computation of its new `next`, to be completed */
   XArray* heads;    /* of IRStmt*: for each run the store of its number, to be completed */
} now;

static void* allocate(const HChar* what, SizeT bytes)
{
   return VG_(malloc)(what, bytes);
}

static void prepare(void)
{
   if (definitions != NULL)
      return;
   definitions = VG_(newXA)(allocate, "tidemark.definitions", VG_(free), sizeof(Definition));
   for (UInt runs = 0; runs <= RUNS_REUSED_MAX; runs++)
      numbers_free[runs] = VG_(newXA)(allocate, "tidemark.free", VG_(free), sizeof(UInt));
   superblocks = VG_(HT_construct)("tidemark.superblocks");
}

/* ---- definitions ---- */

/* The first of so many free numbers in a row. */
static UInt take_numbers(UInt runs)
{
   Word free = runs <= RUNS_REUSED_MAX ? VG_(sizeXA)(numbers_free[runs]) : 0;
   if (free > 0) {
      UInt number = *(UInt*)VG_(indexXA)(numbers_free[runs], free - 1);
      VG_(dropTailXA)(numbers_free[runs], 1);
      return number;
   }
   Definition none = { 0, NULL };
   UInt number = VG_(sizeXA)(definitions);
   for (UInt i = 0; i < runs; i++)
      VG_(addToXA)(definitions, &none);
   return number;
}

static void write_definition(UInt number, const Definition* definition)
{
   ULong* words = log_entry(LOG_DEFINE, number, definition->count);
   VG_(memcpy)(words, definition->items, definition->count * sizeof(ULong));
}

/* Keeps the items gathered as the definition of the superblock at `start`, whose code learns the
   numbers of its runs. */
static void define(Addr start)
{
   UInt runs = VG_(sizeXA)(now.heads);
   UInt number = take_numbers(runs);
   for (UInt i = 0; i < runs; i++) {
      IRStmt* head = *(IRStmt**)VG_(indexXA)(now.heads, i);
      head->Ist.Store.data = mkIRExpr_HWord(number + i);
   }
   Definition* definition = VG_(indexXA)(definitions, number);
   definition->count = now.count;
   definition->items = VG_(malloc)("tidemark.items", now.count * sizeof(ULong));
   VG_(memcpy)(definition->items, now.items, now.count * sizeof(ULong));
   write_definition(number, definition);
   Translated* translated = VG_(malloc)("tidemark.superblock", sizeof *translated);
   translated->node.key = start;
   translated->runs = runs;
   translated->number = number;
   VG_(HT_add_node)(superblocks, translated);
}

void translate_discard(Addr start, VexGuestExtents extents)
{
   (void)extents;
   Translated* translated = superblocks ? VG_(HT_remove)(superblocks, start) : NULL;
   if (translated == NULL)
      return;
   Definition* definition = VG_(indexXA)(definitions, translated->number);
   VG_(free)(definition->items);
   definition->items = NULL;
   if (translated->runs <= RUNS_REUSED_MAX)
      VG_(addToXA)(numbers_free[translated->runs], &translated->number);
   VG_(free)(translated);
}

void translate_define_again(void)
{
   Word count = definitions ? VG_(sizeXA)(definitions) : 0;
   for (Word number = 0; number < count; number++) {
      Definition* definition = VG_(indexXA)(definitions, number);
      if (definition->items != NULL)
         write_definition(number, definition);
   }
}

/* ---- code ---- */

static void add(IRStmt* statement)
{
   addStmtToIRSB(now.out, statement);
}

static IRExpr* assign(IRType type, IRExpr* expression)
{
   IRTemp temporary = newIRTemp(now.out->tyenv, type);
   add(IRStmt_WrTmp(temporary, expression));
   return IRExpr_RdTmp(temporary);
}

static IRExpr* load_word(ULong** address)
{
   return assign(Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)address)));
}

/* Makes sure that the chunk has room for this superblock, whatever its length. */
static void add_room_check(void)
{
   IRExpr* next = load_word(log_next_address());
   IRExpr* limit = load_word(log_limit_address());
   IRExpr* is_past = assign(Ity_I1, IRExpr_Binop(Iop_CmpLT64U, limit, next));
   IRDirty* turn = unsafeIRDirty_0_N(0, "log_turn", VG_(fnptr_to_fnentry)(&log_turn),
                                     mkIRExprVec_0());
   turn->guard = is_past;
   add(IRStmt_Dirty(turn));
   now.next = load_word(log_next_address())->Iex.RdTmp.tmp;
}

/* Stores `value` in the log, `words` words after where this superblock begins to write. */
static IRStmt* add_log_store(UInt words, IRExpr* value)
{
   IRExpr* at = IRExpr_RdTmp(now.next);
   if (words > 0)
      at = assign(Ity_I64, IRExpr_Binop(Iop_Add64, at, mkIRExpr_HWord(8 * words)));
   IRStmt* store = IRStmt_Store(Iend_LE, at, value);
   add(store);
   return store;
}

/* Begins a run, the superblock's first or one that replaces the run before. Its number is written
   first, and `next` is moved beyond its words before any of them is there, so that a fault in its
   middle leaves a whole entry behind. */
static void begin_run(void)
{
   now.is_open = True;
   now.load_last = -1;
   IRStmt* head = add_log_store(0, mkIRExpr_HWord(0));
   VG_(addToXA)(now.heads, &head);
   IRTemp after = newIRTemp(now.out->tyenv, Ity_I64);
   now.bump = IRStmt_WrTmp(
       after, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(now.next), mkIRExpr_HWord(0)));
   add(now.bump);
   add(IRStmt_Store(Iend_LE, mkIRExpr_HWord((HWord)log_next_address()), IRExpr_RdTmp(after)));
}

static void put_item(ULong item)
{
   tl_assert(now.count < ITEMS_MAX);
   now.items[now.count] = item;
   now.count++;
}

static void end_run(void)
{
   if (!now.is_open)
      return;
   put_item(ITEM_ACCESS | (ULong)FORM_END << ITEM_FORM);
   now.bump->Ist.WrTmp.data->Iex.Binop.arg2 = mkIRExpr_HWord(8 * (1 + now.slots));
   now.is_open = False;
}

static void add_item(ULong item)
{
   if (!now.is_open)
      begin_run();
   put_item(item);
}

static void add_instruction(Addr address, UInt bytes)
{
   add_item((ULong)bytes << 48 | (address & 0xffffffffffffULL));
   now.load_last = -1;
}

/* Finds a word of this superblock that `value` is a constant away from; -1 if there is none. */
static Int find_slot(Value value, Long* difference)
{
   for (UInt i = 0; i < now.slots; i++) {
      *difference = value.offset - now.slot[i].value.offset;
      if (now.slot[i].value.base == value.base && *difference == (Int)*difference)
         return i;
   }
   return -1;
}

/* Has the log hold `address`, or `LOG_NOWHERE` unless `guard` (where there is one) holds. */
static UInt add_slot(IRExpr* address, IRExpr* guard)
{
   tl_assert(now.slots < SLOTS_MAX);
   IRExpr* word = address;
   Value* value = &now.slot[now.slots].value;
   value->base = IRTemp_INVALID;
   if (guard != NULL)
      word = assign(Ity_I64, IRExpr_ITE(guard, address, mkIRExpr_HWord(LOG_NOWHERE)));
   else
      *value = now.values[address->Iex.RdTmp.tmp];
   now.slots++;
   add_log_store(now.slots, word);
   return now.slots - 1;
}

/* An access at `address`, if `guard` (where there is one) holds. */
static void add_access(IRExpr* address, UInt bytes, UInt kinds, IRExpr* guard)
{
   ULong item = ITEM_ACCESS | (ULong)kinds << ITEM_KINDS
                | (ULong)(bytes < ITEM_BYTES_MAX ? bytes : ITEM_BYTES_MAX) << ITEM_BYTES;
   if (!now.is_open)
      begin_run();
   Bool is_constant = address->tag == Iex_Const;
   Long difference = 0;
   Int slot = is_constant || guard != NULL
                 ? -1
                 : find_slot(now.values[address->Iex.RdTmp.tmp], &difference);
   if (slot >= 0) {
      item |= (ULong)FORM_DERIVED << ITEM_FORM | (ULong)slot << ITEM_SLOT | (UInt)difference;
   } else if (is_constant && guard == NULL) {
      item |= (ULong)FORM_CONSTANT << ITEM_FORM;
   } else {
      item |= (ULong)add_slot(address, guard) << ITEM_SLOT;
   }
   now.load_last = kinds == ACCESS_LOAD && guard == NULL ? (Int)now.count : -1;
   now.address_last = address;
   now.bytes_last = bytes;
   add_item(item);
   if (is_constant && guard == NULL)
      add_item(address->Iex.Const.con->Ico.U64);
}

static void add_store(IRExpr* address, UInt bytes)
{
   if (now.is_open && now.load_last >= 0 && eqIRAtom(now.address_last, address)
       && now.bytes_last == bytes) {
      now.items[now.load_last] |= (ULong)ACCESS_STORE << ITEM_KINDS;
      now.load_last = -1;
      return;
   }
   add_access(address, bytes, ACCESS_STORE, NULL);
}

static void add_dirty_accesses(const IRDirty* dirty)
{
   UInt kinds = 0;
   if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
      kinds |= ACCESS_LOAD;
   if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify)
      kinds |= ACCESS_STORE;
   if (kinds == 0)
      return;
   IRExpr* guard = dirty->guard;
   Bool is_always = guard->tag == Iex_Const && guard->Iex.Const.con->Ico.U1 == True;
   add_access(dirty->mAddr, dirty->mSize, kinds, is_always ? NULL : guard);
}

static void add_swap_access(const IRCAS* swap)
{
   UInt bytes = sizeofIRType(typeOfIRExpr(now.out->tyenv, swap->dataLo));
   if (swap->dataHi != NULL)
      bytes *= 2;
   add_access(swap->addr, bytes, ACCESS_LOAD | ACCESS_STORE, NULL);
}

/* The known value of `expression`, to be that of the temporary `own`. */
static Value value_of(IRTemp own, const IRExpr* expression)
{
   Value value = { own, 0 };
   if (expression->tag == Iex_RdTmp)
      return now.values[expression->Iex.RdTmp.tmp];
   if (expression->tag != Iex_Binop)
      return value;
   IROp operation = expression->Iex.Binop.op;
   const IRExpr* left = expression->Iex.Binop.arg1;
   const IRExpr* right = expression->Iex.Binop.arg2;
   if ((operation == Iop_Add64 || operation == Iop_Sub64) && left->tag == Iex_RdTmp
       && right->tag == Iex_Const) {
      Long constant = right->Iex.Const.con->Ico.U64;
      value = now.values[left->Iex.RdTmp.tmp];
      value.offset += operation == Iop_Add64 ? constant : -constant;
   }
   return value;
}

/* Temporaries are assigned once: what is known of one holds to the end of the superblock. */
static void prepare_values(const IRSB* in)
{
   Int count = in->tyenv->types_used;
   now.values = VG_(malloc)("tidemark.values", (count + 1) * sizeof(Value));
   for (Int i = 0; i < count; i++) {
      now.values[i].base = i;
      now.values[i].offset = 0;
   }
}

/* Adds what goes before `statement` of the program. */
static void add_before(const IRStmt* statement)
{
   IRTypeEnv* types = now.out->tyenv;
   switch (statement->tag) {
   case Ist_IMark:
      add_instruction(statement->Ist.IMark.addr, statement->Ist.IMark.len);
      break;
   case Ist_WrTmp: {
      IRExpr* value = statement->Ist.WrTmp.data;
      if (value->tag == Iex_Load)
         add_access(value->Iex.Load.addr, sizeofIRType(value->Iex.Load.ty), ACCESS_LOAD, NULL);
      now.values[statement->Ist.WrTmp.tmp] = value_of(statement->Ist.WrTmp.tmp, value);
      break;
   }
   case Ist_Store:
      add_store(statement->Ist.Store.addr,
                sizeofIRType(typeOfIRExpr(types, statement->Ist.Store.data)));
      break;
   case Ist_StoreG: {
      IRStoreG* store = statement->Ist.StoreG.details;
      add_access(store->addr, sizeofIRType(typeOfIRExpr(types, store->data)), ACCESS_STORE,
                 store->guard);
      break;
   }
   case Ist_LoadG: {
      IRLoadG* load = statement->Ist.LoadG.details;
      IRType type = Ity_INVALID, type_wide = Ity_INVALID;
      typeOfIRLoadGOp(load->cvt, &type_wide, &type);
      add_access(load->addr, sizeofIRType(type), ACCESS_LOAD, load->guard);
      break;
   }
   case Ist_Dirty:
      add_dirty_accesses(statement->Ist.Dirty.details);
      break;
   case Ist_CAS:
      add_swap_access(statement->Ist.CAS.details);
      break;
   case Ist_LLSC: {
      Bool is_load = statement->Ist.LLSC.storedata == NULL;
      IRType type = is_load ? typeOfIRTemp(types, statement->Ist.LLSC.result)
                            : typeOfIRExpr(types, statement->Ist.LLSC.storedata);
      add_access(statement->Ist.LLSC.addr, sizeofIRType(type),
                 is_load ? ACCESS_LOAD : ACCESS_STORE, NULL);
      break;
   }
   case Ist_Exit:
      end_run();
      break;
   default:
      break;
   }
}

IRSB* translate(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                const VexGuestExtents* extents, const VexArchInfo* host, IRType guest_word,
                IRType host_word)
{
   (void)layout;
   (void)extents;
   (void)host;
   if (guest_word != Ity_I64 || host_word != Ity_I64)
      VG_(tool_panic)("not a 64-bit program");
   prepare();
   now.out = deepCopyIRSBExceptStmts(in);
   now.slots = 0;
   now.count = 0;
   now.is_open = False;
   prepare_values(in);
   now.heads = VG_(newXA)(allocate, "tidemark.heads", VG_(free), sizeof(IRStmt*));

   /* What stands before the first instruction is Valgrind's own and stays first. */
   Int i = 0;
   for (; i < in->stmts_used && in->stmts[i]->tag != Ist_IMark; i++)
      add(in->stmts[i]);
   if (i < in->stmts_used)
      add_room_check();
   for (; i < in->stmts_used; i++) {
      if (in->stmts[i]->tag == Ist_NoOp)
         continue;
      add_before(in->stmts[i]);
      add(in->stmts[i]);
   }
   end_run();
   tl_assert(1 + now.slots < LOG_ENTRY_WORDS_MAX);
   if (VG_(sizeXA)(now.heads) > 0)
      define(closure->nraddr);
   VG_(deleteXA)(now.heads);
   VG_(free)(now.values);
   return now.out;
}
