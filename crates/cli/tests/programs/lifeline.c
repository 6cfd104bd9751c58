/* Says whether a child holds a robust lock: its engine's, by which the kernel tells that it has
 * ended or executes another program. */
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t id = fork();
    if (id == 0) {
        void **list = 0;
        size_t size = 0;
        if (syscall(SYS_get_robust_list, 0, &list, &size) || !list) return 1;
        puts(list[0] == (void *)list ? "nothing" : "held");
        return fflush(stdout);
    }
    int status = 1;
    waitpid(id, &status, 0);
    return status != 0;
}
