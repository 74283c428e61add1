import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StreamTokenizer;
import java.io.StringReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.*;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Uses what contest programs use, so that the archive of shared classes holds it. Reads nothing that matters. */
public class Train {
    enum Colour { RED, GREEN }

    record Edge(int to, long weight) implements Comparable<Edge> {
        @Override
        public int compareTo(Edge other) {
            return Long.compare(weight, other.weight);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Scanner scanner = new Scanner("1 2\n3.5 word\nline\n");
        long sum = scanner.nextInt() + scanner.nextLong();
        sum += (long) scanner.nextDouble();
        sum += scanner.next().length();
        scanner.nextLine();
        sum += scanner.hasNextLine() ? scanner.nextLine().length() : 0;
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in));
        String line = reader.readLine();
        StringTokenizer tokens = new StringTokenizer(line == null ? "4 5" : line);
        while (tokens.hasMoreTokens()) {
            sum += Integer.parseInt(tokens.nextToken());
        }
        StreamTokenizer stream = new StreamTokenizer(new BufferedReader(new StringReader("6 7")));
        while (stream.nextToken() != StreamTokenizer.TT_EOF) {
            sum += (long) stream.nval;
        }
        DataInputStream data = new DataInputStream(InputStream.nullInputStream());
        sum += data.read() + Math.max(1L, 2L);
        Map<Integer, List<Edge>> graph = new HashMap<>();
        TreeMap<String, Integer> sorted = new TreeMap<>(Comparator.reverseOrder());
        PriorityQueue<Edge> queue = new PriorityQueue<>();
        ArrayDeque<int[]> deque = new ArrayDeque<>();
        TreeSet<Long> set = new TreeSet<>();
        BitSet bits = new BitSet(100);
        for (int i = 0; i < 20; i++) {
            graph.computeIfAbsent(i % 3, key -> new ArrayList<>()).add(new Edge(i, 20 - i));
            sorted.merge("k" + i % 5, 1, Integer::sum);
            queue.add(new Edge(i, i ^ 5));
            deque.addLast(new int[] {i, i});
            set.add((long) i);
            bits.set(i);
        }
        for (Map.Entry<String, Integer> entry : sorted.entrySet()) {
            sum += entry.getValue();
        }
        Integer[] boxed = {3, 1, 2};
        Arrays.sort(boxed, Collections.reverseOrder());
        int[] plain = IntStream.rangeClosed(1, 100).filter(i -> i % 2 == 0).map(i -> i * i).toArray();
        Arrays.sort(plain);
        Arrays.fill(new long[10], 0);
        String joined = Arrays.stream("a b c".split(" ")).map(String::toUpperCase).collect(Collectors.joining(","));
        List<Integer> list = IntStream.range(0, 10).boxed().sorted((a, b) -> b - a).collect(Collectors.toList());
        Collections.sort(list);
        BiFunction<Long, Long, Long> gcd = (a, b) -> BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)).longValue();
        sum += gcd.apply(12L, 18L) + new BigDecimal("1.5").multiply(new BigDecimal(2)).intValue();
        sum += Pattern.compile("[a-z]+").matcher("abc").matches() ? 1 : 0;
        sum += new Random(1).nextInt(10) + Math.floorMod(-1, 5) + Colour.values().length + (int) Math.pow(2, 0.5);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        AtomicLong counter = new AtomicLong();
        pool.submit(counter::incrementAndGet);
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.SECONDS);
        Thread thread = new Thread(null, () -> counter.addAndGet(1), "solve", 1 << 20);
        thread.start();
        thread.join();
        try {
            Object none = new int[0];
            ((int[]) none)[0] = 1;
        } catch (ArrayIndexOutOfBoundsException expected) {
            sum += expected.getMessage().length();
        }
        StringBuilder text = new StringBuilder().append(sum).append(' ').append(joined).reverse();
        OutputStream out = new BufferedOutputStream(System.out);
        PrintWriter writer = new PrintWriter(out);
        writer.printf("%d %s %.3f%n", sum, text, 1.5);
        writer.println(String.format("%05d", 42) + list + sorted + queue.poll() + deque.size() + set.floor(3L));
        writer.flush();
        System.out.println(sum + " " + text + plain.length + counter + bits.cardinality() + Objects.hash(1, 2));
    }
}
