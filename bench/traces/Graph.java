import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Walks a graph in breadth, from several places. */
class Graph {
    public static void main(String[] arguments) {
        Random random = new Random(1);
        Map<Integer, List<Integer>> edges = new HashMap<>();
        for (int i = 0; i < 40000; i++) {
            edges.computeIfAbsent(random.nextInt(15000), at -> new ArrayList<>())
                .add(random.nextInt(15000));
        }
        long sum = 0;
        for (int start = 0; start < 4; start++) {
            Map<Integer, Integer> distance = new HashMap<>();
            ArrayDeque<Integer> queue = new ArrayDeque<>(List.of(start));
            distance.put(start, 0);
            while (!queue.isEmpty()) {
                int at = queue.poll();
                for (int to : edges.getOrDefault(at, List.of())) {
                    if (distance.putIfAbsent(to, distance.get(at) + 1) == null) queue.add(to);
                }
            }
            sum += distance.values().stream().mapToLong(it -> it).sum();
        }
        System.out.println(sum);
    }
}
