/* An NVML with two devices and fixed answers: a GPU (handle 1), and a second one (handle 2) that lacks most features.
   Answers are numbers that a wrong conversion would change. FAKE_NVML_LOG names a file that receives the timeouts of waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned u;
typedef unsigned long long w;
#define OK 0
#define NEED(h) do { if (!inits) return 1; if ((h) != 1 && (h) != 2 && (h) != 3) return 2; } while (0)
#define FULL(h) do { NEED(h); if ((h) != 1) return 3; } while (0)
static int inits = 0;
/* Handles are readable addresses, as NVML's are, and different after each initialisation. */
static char slots[1 << 16];
static w offset = 0;
#define H(h) w raw = (h); (void)raw; h = h > offset ? h - offset : 0

int nvmlInit_v2(void) { if (!inits) offset = offset ? offset + 100 : (w)slots; inits++; return OK; }
int nvmlInitWithFlags(u f) { return nvmlInit_v2(); }
int nvmlShutdown(void) { if (!inits) return 1; inits--; return OK; }
const char *nvmlErrorString(int s) { static char t[32]; snprintf(t, sizeof t, "fake status %d", s); return t; }
static int text(char *to, u n, const char *from) { if (strlen(from) >= n) return 7; strcpy(to, from); return OK; }
int nvmlSystemGetDriverVersion(char *t, u n) { return text(t, n, "580.65.06"); }
int nvmlSystemGetNVMLVersion(char *t, u n) { return text(t, n, "13.580.65.06"); }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return OK; }
int nvmlSystemGetProcessName(u pid, char *t, u n) { return pid == 7 ? text(t, n, "seven") : 6; }
typedef struct { u version; char branch[80]; } branch_t;
int nvmlSystemGetDriverBranch(branch_t *b, u n) { return text(b->branch, n, "r580_00"); }
int nvmlDeviceGetCount_v2(u *n) { if (!inits) return 1; *n = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(u i, w *h) { if (!inits) return 1; if (i > 1) return 2; *h = offset + i + 1; return OK; }
static const char *uuids[] = {"GPU-00112233-4455-6677-8899-aabbccddeeff", "GPU-00112233-4455-6677-8899-000000000001",
                              "MIG-00112233-4455-6677-8899-0000000000aa"};
int nvmlDeviceGetHandleByUUID(const char *t, w *h) {
    if (!inits) return 1;
    for (int i = 0; i < 3; i++) if (!strcmp(t, uuids[i])) { *h = offset + i + 1; return OK; }
    return 6;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *t, w *h) {
    if (!inits) return 1;
    if (!strcmp(t, "00000001:02:00.0")) { *h = offset + 1; return OK; }
    return 6;
}
int nvmlDeviceGetUUID(w h, char *t, u n) { H(h); NEED(h); return text(t, n, uuids[h - 1]); }
int nvmlDeviceGetName(w h, char *t, u n) { H(h); NEED(h); return text(t, n, h == 1 ? "Fake GPU" : "Fake other"); }
int nvmlDeviceGetIndex(w h, u *o) { H(h); NEED(h); *o = h - 1; return OK; }
int nvmlDeviceGetBrand(w h, u *o) { H(h); NEED(h); *o = h == 1 ? 14 : 99; return OK; }
int nvmlDeviceGetArchitecture(w h, u *o) { H(h); NEED(h); *o = h == 1 ? 9 : 77; return OK; }
int nvmlDeviceGetSerial(w h, char *t, u n) { H(h); FULL(h); return text(t, n, "1654922"); }
int nvmlDeviceGetBoardPartNumber(w h, char *t, u n) { H(h); FULL(h); return text(t, n, "692-2G520"); }
int nvmlDeviceGetCudaComputeCapability(w h, int *a, int *b) { H(h); NEED(h); *a = 9; *b = 0; return OK; }
int nvmlDeviceGetMinorNumber(w h, u *o) { H(h); FULL(h); *o = 5; return OK; }
int nvmlDeviceGetModuleId(w h, u *o) { H(h); FULL(h); *o = 4; return OK; }
int nvmlDeviceGetNumFans(w h, u *o) { H(h); NEED(h); *o = h == 1 ? 2 : 0; return OK; }
int nvmlDeviceGetFanSpeed_v2(w h, u f, u *o) { H(h); FULL(h); *o = 30 + f; return OK; }
typedef struct { u version, fan, speed; } rpm_t;
int nvmlDeviceGetFanSpeedRPM(w h, rpm_t *o) { H(h); FULL(h); o->speed = 1500 + o->fan; return OK; }
int nvmlDeviceGetTargetFanSpeed(w h, u f, u *o) { H(h); FULL(h); *o = 40 + f; return OK; }
int nvmlDeviceGetMinMaxFanSpeed(w h, u *a, u *b) { H(h); FULL(h); *a = 10; *b = 100; return OK; }
int nvmlDeviceGetFanControlPolicy_v2(w h, u f, u *o) { H(h); FULL(h); *o = f; return OK; }
int nvmlDeviceSetFanSpeed_v2(w h, u f, u s) { H(h); FULL(h); return s > 100 ? 2 : 4; }
int nvmlDeviceSetDefaultFanSpeed_v2(w h, u f) { H(h); FULL(h); return OK; }
typedef struct { u version, index, signal, target; } cooler_t;
int nvmlDeviceGetCoolerInfo(w h, cooler_t *o) { H(h); NEED(h); o->signal = h == 1 ? 2 : 0; o->target = h == 1 ? 2 | 8 : 1; return OK; }
typedef struct { u version, sensor; int t; } temp_t;
int nvmlDeviceGetTemperatureV(w h, temp_t *o) { H(h); FULL(h); o->t = 41 + o->sensor; return OK; }
typedef struct { u version; int t; } margin_t;
int nvmlDeviceGetMarginTemperature(w h, margin_t *o) { H(h); FULL(h); o->t = -3; return OK; }
int nvmlDeviceGetTemperatureThreshold(w h, u k, u *o) { H(h); FULL(h); *o = 80 + k; return OK; }
typedef struct { u count; struct { int controller, lo, hi, now, target; } s[3]; } thermal_t;
int nvmlDeviceGetThermalSettings(w h, u k, thermal_t *o) {
    H(h); FULL(h);
    o->count = 2;
    o->s[0].controller = 1; o->s[0].lo = -5; o->s[0].hi = 127; o->s[0].now = 39; o->s[0].target = 1;
    o->s[1].controller = -1; o->s[1].lo = 0; o->s[1].hi = 100; o->s[1].now = (int)k; o->s[1].target = 4;
    return OK;
}
int nvmlDeviceGetClock(w h, u t, u id, u *o) { H(h); FULL(h); *o = 1000 + 10 * t + id; return OK; }
int nvmlDeviceGetMaxClockInfo(w h, u t, u *o) { H(h); FULL(h); *o = 1900 + t; return OK; }
int nvmlDeviceGetMaxCustomerBoostClock(w h, u t, u *o) { H(h); FULL(h); *o = 1980 + t; return OK; }
int nvmlDeviceGetMinMaxClockOfPState(w h, u t, u p, u *a, u *b) { H(h); FULL(h); *a = 300 + t; *b = 1700 + p; return OK; }
typedef struct { u version, type, pstate; int now, lo, hi; } offset_t;
int nvmlDeviceGetClockOffsets(w h, offset_t *o) { H(h); FULL(h); o->now = -(int)o->type; o->lo = -200 - (int)o->pstate; o->hi = 300; return OK; }
int nvmlDeviceGetAutoBoostedClocksEnabled(w h, u *a, u *b) { H(h); FULL(h); *a = 1; *b = 0; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(w h, w *o) { H(h); NEED(h); *o = h == 1 ? 1 | 4 | 64 : 0; return OK; }
int nvmlDeviceGetSupportedClocksEventReasons(w h, w *o) { H(h); FULL(h); *o = 0x5ff; return OK; }
int nvmlDeviceGetPerformanceState(w h, u *o) { H(h); NEED(h); *o = h == 1 ? 2 : 32; return OK; }
int nvmlDeviceGetSupportedPerformanceStates(w h, u *o, u bytes) {
    H(h); FULL(h);
    for (u i = 0; i < bytes / 4; i++) o[i] = 32;
    o[0] = 0; o[1] = 2; o[2] = 8;
    return OK;
}
typedef struct { u flags; struct { u present, percent, inc, dec; } d[8]; } pstates_t;
int nvmlDeviceGetDynamicPstatesInfo(w h, pstates_t *o) {
    H(h); FULL(h);
    for (u i = 0; i < 8; i++) { o->d[i].present = i < 4; o->d[i].percent = 10 * i; o->d[i].inc = 70 + i; o->d[i].dec = 20 + i; }
    return OK;
}
int nvmlDeviceGetPersistenceMode(w h, u *o) { H(h); NEED(h); *o = h == 1; return OK; }
int nvmlDeviceSetPersistenceMode(w h, u m) { H(h); NEED(h); return 4; }
int nvmlDeviceGetDisplayMode(w h, u *o) { H(h); NEED(h); *o = h == 1; return OK; }
int nvmlDeviceGetDisplayActive(w h, u *o) { H(h); NEED(h); *o = h != 1; return OK; }
typedef struct { u enabled; } c2c_t;
int nvmlDeviceGetC2cModeInfoV(w h, c2c_t *o) { H(h); NEED(h); o->enabled = h == 1; return OK; }
typedef struct { u version, value; } mode_t_;
int nvmlDeviceGetAddressingMode(w h, mode_t_ *o) { H(h); NEED(h); o->value = h == 1 ? 2 : 0; return OK; }
typedef struct { u version, channel, tpc; } repair_t;
int nvmlDeviceGetRepairStatus(w h, repair_t *o) { H(h); FULL(h); o->channel = 0; o->tpc = 1; return OK; }
typedef struct { u version; w total, reserved, free, used; } memory_t;
int nvmlDeviceGetMemoryInfo_v2(w h, memory_t *o) { H(h); NEED(h); o->total = 1000; o->reserved = 1; o->free = 900; o->used = 99; return OK; }
typedef struct { w total, free, used; } bar_t;
int nvmlDeviceGetBAR1MemoryInfo(w h, bar_t *o) { H(h); FULL(h); o->total = 256; o->free = 200; o->used = 56; return OK; }
typedef struct { u gpu, memory; } util_t;
int nvmlDeviceGetUtilizationRates(w h, util_t *o) { H(h); FULL(h); o->gpu = 55; o->memory = 11; return OK; }
typedef struct { u mp, copy, dec, enc, jpeg, ofa, gi, ci; w mb; } attr_t;
int nvmlDeviceGetAttributes_v2(w h, attr_t *o) { H(h); FULL(h); *o = (attr_t){132, 3, 7, 2, 6, 1, 8, 4, 143771}; return OK; }
typedef struct { u pid; w used; u gi, ci; } process_t;
int nvmlDeviceGetComputeRunningProcesses_v3(w h, u *n, process_t *o) {
    H(h); NEED(h);
    u room = *n, have = h == 1 ? 2 : 0;
    *n = have;
    if (room < have) return 7;
    for (u i = 0; i < have; i++) o[i] = (process_t){7 + i, i ? ~0ull : 4096, i ? 3 : ~0u, i ? 1 : ~0u};
    return OK;
}
typedef struct { u version, domain, bus, device, id, sub, base, subclass; char bus_id[32]; } pci_t;
int nvmlDeviceGetPciInfoExt(w h, pci_t *o) {
    H(h); NEED(h); if (h == 3) return 3;
    o->domain = 1; o->bus = 2; o->device = 0; o->id = 0x233510de; o->sub = 0x18be10de; o->base = 3; o->subclass = 2;
    strcpy(o->bus_id, "00000001:02:00.0");
    return OK;
}
int nvmlDeviceGetCurrPcieLinkGeneration(w h, u *o) { H(h); FULL(h); *o = 3; return OK; }
int nvmlDeviceGetMaxPcieLinkGeneration(w h, u *o) { H(h); FULL(h); *o = 4; return OK; }
int nvmlDeviceGetGpuMaxPcieLinkGeneration(w h, u *o) { H(h); FULL(h); *o = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(w h, u *o) { H(h); FULL(h); *o = 8; return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(w h, u *o) { H(h); FULL(h); *o = 16; return OK; }
int nvmlDeviceGetPcieReplayCounter(w h, u *o) { H(h); FULL(h); *o = 12; return OK; }
int nvmlDeviceGetPcieThroughput(w h, u k, u *o) { H(h); FULL(h); *o = 500 + k; return OK; }
int nvmlDeviceGetInforomVersion(w h, u k, char *t, u n) { H(h); FULL(h); char s[] = "5.0"; s[2] += k; return text(t, n, s); }
int nvmlDeviceGetInforomImageVersion(w h, char *t, u n) { H(h); FULL(h); return text(t, n, "G520.0200"); }
int nvmlDeviceGetInforomConfigurationChecksum(w h, u *o) { H(h); FULL(h); *o = 4022250974u; return OK; }
int nvmlDeviceValidateInforom(w h) { H(h); FULL(h); return 14; }
int nvmlDeviceGetLastBBXFlushTime(w h, w *a, unsigned long *b) { H(h); FULL(h); *a = 1700000000; *b = 32000; return OK; }
int nvmlDeviceGetNumaNodeId(w h, u *o) { H(h); FULL(h); *o = 6; return OK; }
int nvmlDeviceGetCpuAffinityWithinScope(w h, u n, unsigned long *o, u scope) { H(h); FULL(h); memset(o, 0, 8 * n); o[0] = scope ? 0xff : 0x8000000000000005ul; return OK; }
int nvmlDeviceGetMemoryAffinity(w h, u n, unsigned long *o, u scope) { H(h); FULL(h); memset(o, 0, 8 * n); o[0] = 2 + scope; return OK; }
int nvmlDeviceSetCpuAffinity(w h) { H(h); NEED(h); return OK; }
int nvmlDeviceClearCpuAffinity(w h) { H(h); NEED(h); return OK; }
int nvmlSystemGetTopologyGpuSet(u cpu, u *n, w *o) {
    if (!inits) return 1;
    u room = *n; *n = 2;
    if (!o) return OK;
    if (room > 0) o[0] = offset + 2;
    if (room > 1) o[1] = offset + 1;
    return OK;
}
int nvmlDeviceGetTopologyNearestGpus(w h, u level, u *n, w *o) { H(h); FULL(h); u room = *n; *n = level == 50; if (o && room && level == 50) o[0] = offset + 2; return OK; }
int nvmlDeviceGetTopologyCommonAncestor(w h, w k, u *o) { H(h); NEED(h); *o = h == k - offset ? 0 : 30; return OK; }
int nvmlDeviceGetP2PStatus(w h, w k, u i, u *o) { H(h); NEED(h); *o = h == 1 ? i : 99; return OK; }
int nvmlDeviceIsMigDeviceHandle(w h, u *o) { H(h); NEED(h); *o = h == 3; return OK; }
int nvmlDeviceGetMigMode(w h, u *a, u *b) { H(h); FULL(h); *a = 1; *b = 0; return OK; }
int nvmlDeviceSetMigMode(w h, u m, u *s) { H(h); FULL(h); *s = m ? 0 : 19; return OK; }
int nvmlDeviceGetMaxMigDeviceCount(w h, u *o) { H(h); NEED(h); *o = h == 1 ? 3 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(w h, u i, w *o) { H(h); FULL(h); if (i > 2) return 2; if (i != 1) return 6; *o = offset + 3; return OK; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(w h, w *o) { H(h); NEED(h); if (h != 3) return 2; *o = offset + 1; return OK; }
typedef struct { u id, scope; long long time, latency; u type, status; union { double d; u ui; unsigned long ul; w ull; long long sll; int si; unsigned short us; } v; } field_t;
int nvmlDeviceGetFieldValues(w h, int n, field_t *o) {
    H(h); NEED(h);
    for (int i = 0; i < n; i++) {
        o[i].time = 1000 + i; o[i].latency = 20 + i; o[i].status = 0; memset(&o[i].v, 0, 8);
        switch (o[i].id) {
        case 1: o[i].type = 0; o[i].v.d = 2.5; break;
        case 2: o[i].type = 4; o[i].v.sll = -5000000000; break;
        case 3: o[i].type = 5; o[i].v.si = -7; break;
        case 4: o[i].type = 6; o[i].v.us = 65535; break;
        case 5: o[i].type = 3; o[i].v.ull = ~0ull; break;
        case 6: o[i].type = 2; o[i].v.ul = 8; break;
        case 7: o[i].status = 3; break;
        case 91: if (h == 1) { o[i].type = 1; o[i].v.ui = 2; } else o[i].status = 3; break;
        default: o[i].type = 1; o[i].v.ui = o[i].id * 1000 + o[i].scope;
        }
    }
    return OK;
}
int nvmlDeviceClearFieldValues(w h, int n, field_t *o) { H(h); NEED(h); return 4; }
int nvmlDeviceGetNvLinkState(w h, u l, u *o) { H(h); FULL(h); *o = l == 0; return OK; }
int nvmlDeviceGetNvLinkVersion(w h, u l, u *o) { H(h); FULL(h); *o = l == 0 ? 6 : 99; return OK; }
static void log_(const char *what, u a, u b) {
    const char *name = getenv("FAKE_NVML_LOG");
    FILE *f = name ? fopen(name, "a") : 0;
    if (f) { fprintf(f, "%s %u %u\n", what, a, b); fclose(f); }
}
int nvmlDeviceGetSupportedEventTypes(w h, w *o) { H(h); FULL(h); *o = 8 | 1 | 256; return OK; }
int nvmlEventSetCreate(w *s) { if (!inits) return 1; log_("create", 0, 0); *s = 77; return OK; }
int nvmlEventSetFree(w s) { log_("free", s, 0); return OK; }
static w asked;
int nvmlDeviceRegisterEvents(w h, w mask, w s) { H(h); NEED(h); log_("register", mask, s); asked = mask; return h == 1 ? OK : 3; }
typedef struct { w device, type, data; u gi, ci; } event_t;
int nvmlEventSetWait_v2(w s, event_t *o, u ms) {
    if (ms != 100) log_("wait", ms, 0); /* A long wait is split into shorter ones. */
    if (ms <= 5 || asked == 0) return 10;
    *o = (event_t){offset + 1, asked, 79, 2, 4};
    return OK;
}
typedef struct { u version; w set; } set_t;
int nvmlSystemEventSetCreate(set_t *s) { s->set = 88; return OK; }
int nvmlSystemEventSetFree(set_t *s) { log_("system free", s->set, 0); return OK; }
typedef struct { u version; w types; w set; } reg_t;
int nvmlSystemRegisterEvents(reg_t *r) { log_("system register", r->types, r->set); return OK; }
typedef struct { w type; u id; } sys_t;
typedef struct { u version, ms; w set; sys_t *data; u size, n; } wait_t;
int nvmlSystemEventSetWait(wait_t *r) {
    if (r->ms != 100) log_("system wait", r->ms, r->size);
    if (r->ms <= 5) return 10;
    r->n = r->size > 2 ? 2 : r->size;
    for (u i = 0; i < r->n; i++) r->data[i] = (sys_t){2 - i, i ? 0x12345678 : 0x00010200};
    return OK;
}
