import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;

/** A sorted map of strings, filled, read and changed at random: java Words COUNT ACCESSES. */
public class Words {
    public static void main(String[] arguments) {
        int count = Integer.parseInt(arguments[0]);
        int accesses = Integer.parseInt(arguments[1]);
        SplittableRandom random = new SplittableRandom(1);
        TreeMap<String, String> words = new TreeMap<>();
        for (int number = 0; number < count; number++) {
            words.put("key-" + random.nextInt(1 << 30), "value-" + number);
        }
        long total = words.size();
        for (int access = 0; access < accesses; access++) {
            Map.Entry<String, String> entry = words.ceilingEntry("key-" + random.nextInt(1 << 30));
            if (entry != null) {
                total += entry.getValue().length();
                words.put(entry.getKey(), "changed-" + access);
            }
        }
        System.out.println(total);
    }
}
